"""What people look at: a crawl's newest answers and its harvest."""

from __future__ import annotations

from collections import deque

import msgspec

from crawlguide.core.messages import Assigned

ANSWERS_SHOWN, BEST_SHOWN, HARVEST_POINTS = 50, 3, 500


class Answered(msgspec.Struct, frozen=True, gc=False):
    """An answer that gave something: when, to whom, how many URLs, and the best of them."""

    at: float
    crawler_id: str
    given: int
    best: list[Assigned]


class Recent:
    """What people look at: a crawl's newest answers, and its harvest as (fetches, relevant) since this guide opened.

    Both are bounded: of a harvest that is full every second point goes, and the next ones lie as far apart as the rest.
    """

    def __init__(self) -> None:
        self.answers: deque[Answered] = deque(maxlen=ANSWERS_SHOWN)
        self.harvest: list[tuple[int, int]] = []
        self._every, self._unseen = 1, 0

    def due(self, fetches: int) -> bool:
        """Whether so many more fetches make a point of the harvest due."""
        self._unseen += fetches
        return self._unseen >= self._every

    def sample(self, fetches: int, relevant: int) -> None:
        self._unseen = 0
        self.harvest.append((fetches, relevant))
        if len(self.harvest) >= HARVEST_POINTS:
            self.harvest = self.harvest[1::2]
            self._every = max(1, (fetches - self.harvest[0][0]) // len(self.harvest))
