"""Visit rates that are best for given change rates, solved once a day with learned rates and paced evenly.

`lambda-crawl` minimises harmonic staleness (Kolobov and others 2019), so no page is left out:

    ρ = (−Δ + √(Δ² + 4μΔ/λ)) / 2

`binary-rates` maximises freshness under visits by chance (Azar and others 2018), and drops what changes too often:

    ρ = max(0, √(μΔ/λ) − Δ)

The price λ is found by bisection, so that all rates together are the budget. Visits do not come by chance but when they
are due, which is better than what the formulas promise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.lab.freshness.policies.memory import Highest, Memory
from crawlguide.lab.freshness.policies.rates import LearnedRates

if TYPE_CHECKING:
    from collections.abc import Callable

    from crawlguide.core.tables import F64
    from crawlguide.lab.freshness.replay import Known, Visits

BISECTIONS = 60
SOLVED_EVERY_DAYS = 1.0


class OptimalRates:
    def __init__(self, known: Known, formula: Callable[[F64, F64, float], F64]) -> None:
        self.share, self.formula = known.share, formula
        self.rates = LearnedRates(len(known))
        self.visits = np.zeros(len(known))  # a day
        self._solved = -np.inf

    def values(self, memory: Memory, now: float) -> F64:
        if now - self._solved >= SOLVED_EVERY_DAYS:
            self._solved = now
            self._solve(memory)
        return self.visits * (now - memory.last)

    def learn(self, memory: Memory, visits: Visits) -> None:
        self.rates.learn(visits)

    def _solve(self, memory: Memory) -> None:
        asked = memory.asked
        self.visits[:] = 0.0
        self.visits[asked] = solved(
            self.formula, memory.importance[asked], self.rates.rate[asked], self.share * int(asked.sum())
        )


def solved(formula: Callable[[F64, F64, float], F64], importance: F64, change: F64, total: float) -> F64:
    """Visits a day of every page that together are `total`."""
    low, high = 1e-9, 1e9
    for _ in range(BISECTIONS):
        price = float(np.sqrt(low * high))
        low, high = (price, high) if formula(importance, change, price).sum() > total else (low, price)
    return formula(importance, change, high)


def harmonic(importance: F64, change: F64, price: float) -> F64:
    rates: F64 = (np.sqrt(change**2 + 4.0 * importance * change / price) - change) / 2.0
    return rates


def binary(importance: F64, change: F64, price: float) -> F64:
    rates: F64 = np.maximum(0.0, np.sqrt(importance * change / price) - change)
    return rates


def lambda_crawl(known: Known) -> Highest:
    return Highest(known, OptimalRates(known, harmonic))


def binary_rates(known: Known) -> Highest:
    return Highest(known, OptimalRates(known, binary))
