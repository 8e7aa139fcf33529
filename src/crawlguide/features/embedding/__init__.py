"""The meaning of short texts as vectors: a table of word pieces, no network, microseconds a text."""

from crawlguide.features.embedding.addresses import words_of
from crawlguide.features.embedding.table import Embedding, plain

__all__ = ["Embedding", "plain", "words_of"]
