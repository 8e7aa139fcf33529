"""Loops over the columns of a store."""
