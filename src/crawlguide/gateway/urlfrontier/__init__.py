"""The door for clients of URLFrontier 2.6, such as StormCrawler: the same wire, answered by a guide."""
