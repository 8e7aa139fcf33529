"""The corridor: a batch of candidates walks from the store to the answer."""
