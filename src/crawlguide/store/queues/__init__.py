"""What waits to be fetched: exact priority queues over the rows of a frontier."""
