"""The page with the largest crawl value first: with learned rates a rival, with true ones a reference.

V(τ) = μ/Δ · (1 − e^(−Δτ)(1 + Δτ))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.lab.freshness.policies.memory import Highest, Memory
from crawlguide.lab.freshness.policies.rates import LearnedRates

if TYPE_CHECKING:
    from crawlguide.core.tables import F64
    from crawlguide.lab.freshness.histories import DailyRates
    from crawlguide.lab.freshness.replay import Known, Visits

EXPLORED = 0.02  # of the visits go to any page


def crawl_value(importance: F64, rate: F64, waited: F64) -> F64:
    expected = rate * waited
    values: F64 = importance / rate * (1.0 - np.exp(-expected) * (1.0 + expected))
    return values


class Greedy:
    def __init__(self, known: Known) -> None:
        self.rates = LearnedRates(len(known))
        self._rng = np.random.default_rng([known.seed, 3])

    def values(self, memory: Memory, now: float) -> F64:
        values = crawl_value(memory.importance, self.rates.rate, now - memory.last)
        lucky = self._rng.random() < EXPLORED
        return self._rng.random(len(values)) if lucky else values

    def learn(self, memory: Memory, visits: Visits) -> None:
        self.rates.learn(visits)


class TrueRates:
    def __init__(self, rates: DailyRates) -> None:
        self.rates = rates

    def values(self, memory: Memory, now: float) -> F64:
        return crawl_value(memory.importance, np.maximum(self.rates.on(now), 1e-9), now - memory.last)

    def learn(self, memory: Memory, visits: Visits) -> None: ...


def greedy(known: Known) -> Highest:
    return Highest(known, Greedy(known))


def oracle(known: Known, rates: DailyRates) -> Highest:
    return Highest(known, TrueRates(rates))
