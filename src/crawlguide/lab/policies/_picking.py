"""Policies that pick instead of ranking: their next picks stand first, and everything else waits behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.definition import Fixed
from crawlguide.lab.policies._known import Ranking

if TYPE_CHECKING:
    from crawlguide.core.tables import U64
    from crawlguide.core.types import Ask, Batch, Lesson


class Ahead(Fixed, frozen=True):
    kind: str = ""
    ahead: int = 10  # how many picks stand ready: what crawlers ask for before they tell again


class Picking(Ranking):
    """Hears a lesson, then picks anew. A pick that nobody took goes back to where it came from."""

    def __init__(self, seed: int, ahead: int, **columns: float) -> None:
        super().__init__(taken=0.0, **columns)
        self.chance = np.random.default_rng(seed)
        self.ahead = ahead
        self.picked: list[int] = []

    def hear(self, lesson: Lesson) -> None:
        raise NotImplementedError

    def pick(self) -> int | None:
        """The number of a URL that nobody has taken, removed from wherever it waited; None if there is none."""
        raise NotImplementedError

    def put_back(self, number: int) -> None:
        raise NotImplementedError

    def assigned(self, batch: Batch, ask: Ask) -> None:
        self.known["taken"][self.known.numbers(batch.id)] = 1.0

    def learn(self, lesson: Lesson) -> U64:
        before, known = self.picked, self.known
        self.hear(lesson)
        for old in before:
            known["value"][old] = 0.0
            if not known["taken"][old]:
                self.put_back(old)
        self.picked = []
        while len(self.picked) < self.ahead and (number := self.pick()) is not None:
            if not known["taken"][number]:
                self.picked.append(number)
        known["value"][self.picked] = 1.0 - np.arange(len(self.picked)) / (self.ahead + 1.0)
        return known.ids[np.array(before + self.picked, np.int64)]
