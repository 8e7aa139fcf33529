"""What is known, as columns: rows of URLs, hosts, links, leases, politeness queues."""
