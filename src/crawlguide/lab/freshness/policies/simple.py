"""Orders that learn nothing, or one number for each page: what crawlers do that have no model of change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.lab.freshness.policies.memory import Highest, Memory
from crawlguide.lab.freshness.policies.rates import LearnedRates

if TYPE_CHECKING:
    from crawlguide.core.tables import F64
    from crawlguide.lab.freshness.replay import Known, Visits

FIXED_DAYS = 7.0


class Uniform:
    """All pages equally often: the one that waits longest comes first."""

    def values(self, memory: Memory, now: float) -> F64:
        return now - memory.last

    def learn(self, memory: Memory, visits: Visits) -> None: ...


class Fixed:
    """Every page is due after so many days and no page before; the one that waits longest comes first."""

    def values(self, memory: Memory, now: float) -> F64:
        age = now - memory.last
        return np.where(age >= FIXED_DAYS, age, -np.inf)

    def learn(self, memory: Memory, visits: Visits) -> None: ...


class Proportional:
    """As often as pages change: the one with the most changes expected comes first."""

    def __init__(self, count: int) -> None:
        self.rates = LearnedRates(count)

    def values(self, memory: Memory, now: float) -> F64:
        return self.rates.rate * (now - memory.last)

    def learn(self, memory: Memory, visits: Visits) -> None:
        self.rates.learn(visits)


def uniform(known: Known) -> Highest:
    return Highest(known, Uniform())


def fixed(known: Known) -> Highest:
    return Highest(known, Fixed())


def proportional(known: Known) -> Highest:
    return Highest(known, Proportional(len(known)))
