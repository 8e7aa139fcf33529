"""Everything the table is made from, in the form in which it is learned."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from crawlguide.training.embedding import fitting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.training.embedding.encoding import Encoder


class Splitter:
    """Texts into rows of the table: the encoder's own pieces, but whole words where the table has them."""

    def __init__(self, encoder: Encoder, rows: Sequence[str]) -> None:
        self._encoder = encoder
        self._row = {piece: row for row, piece in enumerate(rows)}
        self._split: dict[str, list[int]] = {}

    def bags(self, texts: Sequence[str]) -> fitting.Bags:
        found = [list(chain.from_iterable(map(self._of_word, self._words(text)))) or [0] for text in texts]
        sizes = torch.tensor([0, *map(len, found)])
        rows = torch.tensor(list(chain.from_iterable(found)))
        return fitting.Bags(rows.to(self._encoder.device), sizes.cumsum(0).to(self._encoder.device))

    def _words(self, text: str) -> list[str]:
        tokens = self._encoder.model.tokenizer.backend_tokenizer
        return [word for word, _ in tokens.pre_tokenizer.pre_tokenize_str(tokens.normalizer.normalize_str(text))]

    def _of_word(self, word: str) -> list[int]:
        if word not in self._split:
            known = word in self._row
            pieces = [word] if known else self._encoder.model.tokenizer.tokenize(word)
            self._split[word] = [self._row[piece] for piece in pieces if piece in self._row]
        return self._split[word]


def gathered(encoder: Encoder, rows: Sequence[str], texts: Sequence[str]) -> fitting.Lessons:
    """The teacher's vector of every row by itself, and then of every text."""
    bags = Splitter(encoder, rows).bags(texts)
    alone = torch.arange(len(rows), device=encoder.device)
    both = fitting.Bags(torch.cat([alone, bags.rows]), torch.cat([alone, bags.starts + len(rows)]))
    return fitting.Lessons(both, functional.normalize(torch.cat([of_rows(encoder, rows), encoder.of_texts(texts)])))


def of_rows(encoder: Encoder, rows: Sequence[str]) -> torch.Tensor:
    """Pieces of the vocabulary go in as they are, whole words as texts."""
    vocabulary = set(encoder.vocabulary)
    own = [row for row in rows if row in vocabulary]
    words = [row for row in rows if row not in vocabulary]
    found = dict(zip(own, encoder.of_pieces(own), strict=True))
    if words:
        found |= dict(zip(words, encoder.of_texts(words), strict=True))
    return torch.stack([found[row] for row in rows])
