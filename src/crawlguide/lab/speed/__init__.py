"""What an ask, a tell and a start cost, at several sizes of frontier. `crawlguide bench` prints it as a table."""
