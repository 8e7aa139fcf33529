"""What the store knows, as columns: rows of URLs, hosts, links, leases and politeness queues."""
