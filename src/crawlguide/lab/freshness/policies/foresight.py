"""A reference that knows every change to come: it visits copies that are old now and whose pages will rest longest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.lab.freshness.policies.memory import Highest, Memory

if TYPE_CHECKING:
    from crawlguide.core.tables import F64
    from crawlguide.lab.freshness.histories import Histories
    from crawlguide.lab.freshness.replay import Known, Visits


class Foresight:
    def __init__(self, histories: Histories) -> None:
        self._pages, self._at = histories.events
        self._ends = histories.counts_until
        self._histories, self._past = histories, 0
        self._happened = np.zeros(len(histories), np.int64)
        self._seen = np.zeros(len(histories), np.int64)
        self._all = np.append(histories.at, np.inf)

    def values(self, memory: Memory, now: float) -> F64:
        until = int(np.searchsorted(self._at, now, "right"))
        np.add.at(self._happened, self._pages[self._past : until], 1)
        self._past = until
        place = self._histories.first[:-1] + self._happened
        following = np.where(place < self._histories.first[1:], self._all[place], np.inf)
        rest = np.minimum(following, self._ends) - now
        return np.where(self._happened != self._seen, memory.importance * rest, -np.inf)

    def learn(self, memory: Memory, visits: Visits) -> None:
        self._seen[visits.pages] = self._happened[visits.pages]


def build(known: Known, histories: Histories) -> Highest:
    return Highest(known, Foresight(histories))
