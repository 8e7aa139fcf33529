"""The adaptive fetch schedule of Apache Nutch with its default settings.

An interval of a page grows by 0.4 of itself when a visit finds it unchanged, and shrinks by 0.2 when it has changed. It
is at least as long as the time since the last change was seen; 0.3 of that time the next visit comes earlier
(`sync_delta`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.lab.freshness.policies.memory import Highest, Memory

if TYPE_CHECKING:
    from crawlguide.core.tables import F64
    from crawlguide.lab.freshness.replay import Known, Visits

INCREASE, DECREASE = 0.4, 0.2
SYNC_DELTA = 0.3
FIRST_DAYS = 30.0
SHORTEST_DAYS, LONGEST_DAYS = 60 / 86_400, 365.0


class Adaptive:
    """Those that are due longest come first. If fewer are due than may be visited, those that will be due next."""

    def __init__(self, count: int) -> None:
        self.interval = np.full(count, FIRST_DAYS)
        self.modified = np.full(count, np.nan)  # when a change was seen last; before any, when the page was found
        self.due = np.full(count, np.nan)

    def values(self, memory: Memory, now: float) -> F64:
        return now - np.where(np.isnan(self.due), memory.since + FIRST_DAYS, self.due)

    def learn(self, memory: Memory, visits: Visits) -> None:
        pages = visits.pages
        before = np.where(np.isnan(self.modified[pages]), memory.since[pages], self.modified[pages])
        modified = np.where(visits.changed, visits.at, before)
        interval = self.interval[pages] * np.where(visits.changed, 1.0 - DECREASE, 1.0 + INCREASE)
        delta = visits.at - modified
        interval = np.clip(np.maximum(interval, delta), SHORTEST_DAYS, LONGEST_DAYS)
        self.interval[pages], self.modified[pages] = interval, modified
        self.due[pages] = visits.at - SYNC_DELTA * delta + interval


def build(known: Known) -> Highest:
    return Highest(known, Adaptive(len(known)))
