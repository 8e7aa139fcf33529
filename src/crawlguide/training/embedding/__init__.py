"""Distils a sentence encoder into a table of word pieces (docs/embedding.md)."""
