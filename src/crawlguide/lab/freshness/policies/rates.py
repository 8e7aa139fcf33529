"""Change rates as the rivals learn them: the most likely rate under a gamma prior, from the last 64 visits of a page.

g(x) = (a − 1)/x − b + Σ_changed t·e^(−xt)/(1 − e^(−xt)) − Σ_unchanged t
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, Rows
    from crawlguide.lab.freshness.replay import Visits

PRIOR_COUNT, PRIOR_DAYS = 1.5, 6.0
REMEMBERED = 64
ITERATIONS = 25
TOLERANCE = 1e-6
LOWEST = 1e-5


class LearnedRates:
    """The rate of every page, changes a day."""

    def __init__(self, count: int) -> None:
        self.rate = np.full(count, PRIOR_COUNT / PRIOR_DAYS)
        self._gaps = np.zeros((count, REMEMBERED))
        self._changed = np.zeros((count, REMEMBERED), bool)
        self._visits = np.zeros(count, np.int64)

    def learn(self, visits: Visits) -> None:
        pages = visits.pages
        place = self._visits[pages] % REMEMBERED
        self._gaps[pages, place], self._changed[pages, place] = np.maximum(visits.gap, 1e-6), visits.changed
        self._visits[pages] += 1
        self.rate[pages] = self._most_likely(pages)

    def _most_likely(self, pages: Rows) -> F64:
        """Newton's method from where it ended before; a step is at most a factor of four."""
        used = min(REMEMBERED, int(self._visits[pages].max()))
        gaps, changed = self._gaps[pages, :used], self._changed[pages, :used]
        quiet = (gaps * ~changed).sum(axis=1)
        rate = self.rate[pages]
        for _ in range(ITERATIONS):
            still = np.exp(-rate[:, None] * gaps)
            odds = np.where(changed, gaps / np.maximum(1.0 - still, 1e-12), 0.0)
            slope = (PRIOR_COUNT - 1.0) / rate - PRIOR_DAYS + (odds * still).sum(axis=1) - quiet
            bend = -(PRIOR_COUNT - 1.0) / rate**2 - (odds**2 * still).sum(axis=1)
            before = rate
            rate = np.clip(rate - slope / bend, rate / 4.0, rate * 4.0)
            rate = np.maximum(rate, LOWEST)
            if np.abs(rate - before).max() < TOLERANCE:
                break
        return rate
