"""Static embeddings: the meaning of short texts as vectors, from a table of word pieces, in microseconds a text."""

from crawlguide.features.embedding.table import Embedding, plain
from crawlguide.features.embedding.url_words import words_of

__all__ = ["Embedding", "plain", "words_of"]
