"""What policies remember of pages, and the choice of those with the highest values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, Mask, Rows
    from crawlguide.lab.freshness.replay import Known, Visits


@dataclass
class Memory:
    """One place for each page. `asked` are those that were discovered and not found gone."""

    importance: F64
    asked: Mask
    last: F64  # day of the last visit
    since: F64  # day of the first

    @classmethod
    def of(cls, known: Known) -> Memory:
        count = len(known)
        return cls(known.importance, np.zeros(count, bool), np.zeros(count), np.zeros(count))


class Valuation(Protocol):
    """Says what a visit of each page is worth now; pages of value −∞ are not visited."""

    def values(self, memory: Memory, now: float) -> F64: ...

    def learn(self, memory: Memory, visits: Visits) -> None:
        """The memory still holds the visits before these."""


class Highest:
    """A policy that always visits the pages with the highest values."""

    def __init__(self, known: Known, valuation: Valuation) -> None:
        self.memory = Memory.of(known)
        self.valuation = valuation
        self._tie = np.random.default_rng([known.seed, 2]).random(len(known)) * 1e-9

    def discover(self, pages: Rows, at: float) -> None:
        memory = self.memory
        memory.asked[pages], memory.last[pages], memory.since[pages] = True, at, at

    def choose(self, now: float, count: int) -> Rows:
        values = np.where(self.memory.asked, self.valuation.values(self.memory, now) + self._tie, -np.inf)
        count = min(count, len(values))
        pages = np.argpartition(values, len(values) - count)[len(values) - count :]
        return pages[values[pages] > -np.inf]

    def learn(self, visits: Visits) -> None:
        self.valuation.learn(self.memory, visits)
        self.memory.last[visits.pages] = visits.at
        self.memory.asked[visits.pages[visits.gone]] = False
