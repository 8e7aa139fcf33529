"""The guide: a batch of candidates walks from the store to the answer."""
