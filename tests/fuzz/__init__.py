"""Random requests, right, almost right and wrong, against a server of its own: `make fuzz`."""
