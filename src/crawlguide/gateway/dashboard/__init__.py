"""The status page: what every crawl found, what it is about to fetch and why, which hosts are in trouble."""
