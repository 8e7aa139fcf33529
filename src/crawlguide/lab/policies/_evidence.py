"""Policies that look at the pages leading to a URL: how many there are, and how relevant they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.lab.policies._known import Ranking, pages, relevances

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I64, U64
    from crawlguide.core.types import Lesson

TIE = 1e-6  # of equals a random one goes first


class Evidence(Ranking):
    """Counts each page that links to a URL once. A seed counts as linked from one relevant page."""

    def __init__(self, seed: int, **columns: float) -> None:
        super().__init__(parents=0.0, total=0.0, best=0.0, tie=0.0, **columns)
        self.chance = np.random.default_rng(seed)

    def judged(self, number: I64) -> F64:
        """What these URLs are worth, from 0 to 1, by the columns of the book."""
        raise NotImplementedError

    def learn(self, lesson: Lesson) -> U64 | None:
        known, relevance = self.known, relevances(lesson)
        number = known.numbers(lesson.links.id)
        fresh = number[lesson.fresh]
        known["tie"][fresh] = self.chance.random(len(fresh))
        for page, targets, _ in pages(lesson, number):
            worth = 1.0 if page < 0 else relevance[page]
            known["parents"][targets] += 1.0
            known["total"][targets] += worth
            known["best"][targets] = np.maximum(known["best"][targets], worth)
        touched = np.unique(number)
        known["value"][touched] = self.judged(touched) + TIE * known["tie"][touched]
        return None
