"""How many relevant pages are still reachable, and what the next one costs: by the curve that hits follow.

A guided crawl fetches the likeliest pages first, so its hits thin out as it goes on:

    rate(n) = a · (n + c)^-s        expected hits of the n-th request

`c` is how long the crawl found at its best, `s` how steeply it fell since; s = 2 is the curve of Michaelis and Menten,
with which ecologists extrapolate how many species an area holds. No single curve is fitted: every (c, s) of a grid
counts by how well it explains the hits so far (a Poisson likelihood, `a` at its best for each), and what remains is the
mean over all of them of

    remaining = ∫ rate(x) dx  from n to n + queued

so the estimate is never more than what waits could hold. Measured in docs/research/stopping.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import F64

RELEVANT = 0.5  # a page of this relevance is a hit, as the guide counts them
MOST_WINDOWS = 256  # of equal length, in which hits are counted; when there are more, two become one
FEWEST_HITS = 5  # with fewer nothing is said of a curve
PLATEAU = np.logspace(-2.5, 2, 28)  # c, in requests so far
STEEPNESS = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 4.0])  # s
NINETY = 1.645  # standard deviations to both ends of an interval that holds nine of ten


@dataclass(frozen=True)
class Estimate:
    """What a crawl has found, what it may still find, and at what price."""

    found: int  # relevant pages
    remaining: float  # that are still reachable, estimated
    low: float  # with nine chances of ten there are at least so many,
    high: float  # and at most so many
    share: float  # of the reachable ones that are found, from 0 to 1
    next_price: float  # requests for the next relevant page; infinite where none is expected


class Estimator:
    """Listens to a crawl, fetch by fetch in their order. Takes the same memory however long the crawl."""

    def __init__(self) -> None:
        self._hits, self._chances = np.zeros(MOST_WINDOWS), np.zeros(MOST_WINDOWS)
        self._width = 1  # requests in a window
        self._requests = self._found = self._discovered = 0

    def fetched(self, p: float, relevance: float, discovered: int = 0) -> None:
        """A request was made: the chance that the guide gave it, what came of it (0 where it failed), and how many
        links it led to that nobody knew."""
        if self._requests == MOST_WINDOWS * self._width:
            self._halve()
        window, hit = self._requests // self._width, relevance >= RELEVANT
        self._hits[window] += hit
        self._chances[window] += p
        self._requests, self._found = self._requests + 1, self._found + int(hit)
        self._discovered += discovered

    def _halve(self) -> None:
        for counts in (self._hits, self._chances):
            counts[: MOST_WINDOWS // 2] = counts.reshape(-1, 2).sum(1)
            counts[MOST_WINDOWS // 2 :] = 0
        self._width *= 2

    def estimate(self, queued: int | None = None) -> Estimate:
        """As things stand; `queued` is how many URLs wait (the guide's statistics say so), else what was discovered
        and not fetched."""
        waiting = max(self._discovered - self._requests, 0) if queued is None else queued
        if self._found < FEWEST_HITS:
            return self._unknown(waiting)
        remaining, spread, rate = _extrapolated(self._hits[: self._windows], self._ends(), float(waiting))
        low, high = _interval(remaining, spread, float(waiting))
        share, price = self._found / (self._found + remaining), 1 / rate if waiting and rate else math.inf
        return Estimate(self._found, remaining, low, high, share, price)

    def _unknown(self, waiting: int) -> Estimate:
        """Too little was found to tell anything: all that waits may be relevant."""
        rate = (self._found + 1) / (self._requests + 2)
        share = 1.0 if not waiting else self._found / (self._found + rate * waiting)
        return Estimate(self._found, rate * waiting, 0.0, float(waiting), share, 1 / rate if waiting else math.inf)

    @property
    def _windows(self) -> int:
        return -(-self._requests // self._width)

    def _ends(self) -> F64:
        """After how many requests each window began, and the last one ended."""
        ends = np.arange(self._windows + 1, dtype=np.float64) * self._width
        ends[-1] = self._requests
        return ends


def _extrapolated(hits: F64, ends: F64, waiting: float) -> tuple[float, float, float]:
    """Over all curves: the mean of what remains, its standard deviation, and the rate at this moment."""
    now = ends[-1]
    plateau, steepness = (grid.ravel() for grid in np.meshgrid(PLATEAU * now, STEEPNESS, indexing="ij"))
    shape = _between(ends[None, :-1], ends[None, 1:], plateau[:, None], steepness[:, None])
    height = hits.sum() / shape.sum(1)
    expected = height[:, None] * shape
    likelihood = (hits * np.log(expected) - expected).sum(1)
    belief = np.exp(likelihood - likelihood.max())
    belief /= belief.sum()
    remaining = height * _between(now, now + waiting, plateau, steepness)
    mean = float(belief @ remaining)
    spread = math.sqrt(float(belief @ (remaining - mean) ** 2) + mean)  # of the curves, and of chance
    return mean, spread, float(belief @ (height * (now + plateau) ** -steepness))


def _between(start: F64 | float, end: F64 | float, plateau: F64, steepness: F64) -> F64:
    """∫ (x + c)^-s dx from start to end."""
    near, far = start + plateau, end + plateau
    power = np.where(steepness == 1, 0.5, 1 - steepness)  # where it is 1 the other formula counts
    area: F64 = np.where(steepness == 1, np.log(far / near), (far**power - near**power) / power)
    return area


def _interval(mean: float, spread: float, most: float) -> tuple[float, float]:
    """Both ends of nine tenths of a log-normal distribution, which never lies below 0."""
    if not mean:
        return 0.0, 0.0
    deviation = math.sqrt(math.log1p((spread / mean) ** 2))
    middle = math.log(mean) - deviation**2 / 2
    low, high = math.exp(middle - NINETY * deviation), math.exp(middle + NINETY * deviation)
    return low if low >= 0.5 else 0.0, min(max(high, 1.0), most)
