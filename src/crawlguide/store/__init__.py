"""What is known of URLs, hosts, links and leases."""
