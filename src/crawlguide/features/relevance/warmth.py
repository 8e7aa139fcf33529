"""How much a text speaks about a goal: the sum of how near each of its words is to it.

    warmth = log(1 + 8 · Σ max(0, cos(goal, word) − 0.25))

The vector of a text is the mean of its words, so its cosine does not know how many there are: one warm word in three
stands as high as a hundred in three hundred. The sum does. Its logarithm, since the tenth says less than the first.
"""

from __future__ import annotations

from math import log1p
from typing import TYPE_CHECKING

from crawlguide.features.embedding import Embedding
from crawlguide.features.relevance.words import LONGEST, MOST_KNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.features.embedding.table import F32

WARM = 0.25  # the cosine from which a word has to do with the goal: nine of ten words have less
STEEPNESS = 8.0


class Warmth:
    """Of texts, towards one goal; most words of a text have been looked up before."""

    def __init__(self, aim: F32) -> None:
        self._aim = aim
        self._known: dict[str, float] = {}

    def of(self, words: Sequence[str]) -> float:
        """Of a text with these words, each as often as it stands there."""
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        new = list(set(words).difference(self._known))
        if new:
            vectors = Embedding.load().embed([word[:LONGEST] for word in new])
            cosines = (vectors * self._aim).sum(axis=1)  # @ rounds by how many there are, and a judge shall not
            self._known.update(zip(new, (cosines - WARM).clip(0.0).tolist(), strict=True))
        return log1p(STEEPNESS * sum(map(self._known.__getitem__, words)))
