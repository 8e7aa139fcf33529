"""How many relevant pages are still reachable, and what the next one costs: by the curve that hits follow.

A guided crawl fetches the likeliest pages first, so its hits thin out as it goes on:

    rate(n) = a · (n + c)^-s        expected hits of the n-th request

`c` is how long the crawl found at its best, `s` how steeply it fell since; s = 0 is a crawl without any order, s = 2,
the steepest, the curve of Michaelis and Menten with which ecologists extrapolate how many species an area holds. No
single curve is fitted: every (c, s) of a grid counts by how well it explains the hits so far, the newer the more (a
Poisson likelihood, `a` at its best for each). Hits come in bursts, as a crawl finds a new corner of the web; the more
they do, the less is the likelihood trusted (it is divided by their dispersion, a quasi-likelihood) and the more count
flatter curves. What remains is the mean over all curves of

    remaining = ∫ rate(x) dx        from n to n + queued

but at most what all that waits would hold at the rate of the last quarter of the crawl, since hits thin out: a crawl
that has emptied its only corner falls more sharply than any of the curves. The price of the next page is read from the
curves and from the chances that the guide gave of late. docs/research/stopping.md has what was measured and tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import F64

RELEVANT = 0.5  # a page of this relevance is a hit, as the guide counts them
MOST_WINDOWS = 32  # of equal length, in which hits are counted; when there are more, two become one
FEWEST_HITS = 5  # with fewer nothing is said of a curve
PLATEAU = np.logspace(-2.5, 2, 28)  # c, in requests so far
STEEPNESS = np.array([0.0, 0.5, 1.0, 1.5, 2.0])  # s
PARAMETERS = 3  # of a curve
LAST = 4  # one part of so many is the latest
RECENT = 50  # requests, over which the chances that the guide gave are averaged
NINETY = 1.645  # standard deviations to both ends of an interval that holds nine of ten
MISFIT, MISFIT_EARLY = 0.5, 1.5  # how far curves miss on a logarithmic scale in the end, and so much more at the start


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
        self._hits = np.zeros(MOST_WINDOWS)
        self._width = 1  # requests in a window
        self._requests = self._found = self._discovered = 0
        self._chance = 0.0  # mean of those that the guide gave of late

    def fetched(self, p: float, relevance: float, discovered: int = 0) -> None:
        """A request was made: the chance that the guide gave it, what came of it (0 where it failed), and how many
        links it led to that nobody knew."""
        if self._requests == MOST_WINDOWS * self._width:
            self._halve()
        hit = relevance >= RELEVANT
        self._hits[self._requests // self._width] += hit
        self._requests, self._found = self._requests + 1, self._found + int(hit)
        self._discovered += discovered
        self._chance += (p - self._chance) / min(self._requests, RECENT)

    def _halve(self) -> None:
        self._hits[: MOST_WINDOWS // 2] = self._hits.reshape(-1, 2).sum(1)
        self._hits[MOST_WINDOWS // 2 :] = 0
        self._width *= 2

    def estimate(self, queued: int | None = None) -> Estimate:
        """As things stand; `queued` is how many URLs wait (the guide's statistics say so), else what was discovered
        and not fetched."""
        waiting = max(self._discovered - self._requests, 0) if queued is None else queued
        if self._found < FEWEST_HITS:
            return self._unknown(waiting)
        remaining, spread, rate = _extrapolated(self._hits[: self._windows], self._ends(), float(waiting))
        share = self._found / (self._found + remaining)
        low, high = _interval(remaining, spread, share, float(waiting))
        margin = math.sqrt(rate * self._chance) if self._chance > 0 else rate
        return Estimate(self._found, remaining, low, high, share, 1 / margin if waiting else math.inf)

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
    newness = ends[1:] / now
    height = (hits @ newness) / (shape @ newness)
    expected = height[:, None] * shape
    likelihood = (hits * np.log(expected) - expected) @ newness
    dispersion = _dispersion(hits, expected[likelihood.argmax()])
    belief = np.exp((likelihood - likelihood.max()) / dispersion)
    belief /= belief.sum()
    remaining = height * _between(now, now + waiting, plateau, steepness)
    remaining = np.minimum(remaining, _recent_rate(hits, ends) * waiting)
    mean = float(belief @ remaining)
    spread = math.sqrt(float(belief @ (remaining - mean) ** 2) + dispersion * mean)  # of the curves, and of chance
    return mean, spread, float(belief @ (height * (now + plateau) ** -steepness))


def _recent_rate(hits: F64, ends: F64) -> float:
    """Of the last quarter; one hit more, as none may have come by chance."""
    last = len(hits) - -(-len(hits) // LAST)
    return float(hits[last:].sum() + 1) / float(ends[-1] - ends[last])


def _dispersion(hits: F64, expected: F64) -> float:
    """By how much hits scatter more around the best curve than by chance alone; 1: they do not."""
    scatter = float(((hits - expected) ** 2 / np.maximum(expected, 0.5)).sum())
    return max(scatter / max(len(hits) - PARAMETERS, 1), 1.0)


def _between(start: F64 | float, end: F64 | float, plateau: F64, steepness: F64) -> F64:
    """∫ (x + c)^-s dx from start to end."""
    near, far = start + plateau, end + plateau
    power = np.where(steepness == 1, 0.5, 1 - steepness)  # where it is 1 the other formula counts
    area: F64 = np.where(steepness == 1, np.log(far / near), (far**power - near**power) / power)
    return area


def _interval(mean: float, spread: float, share: float, most: float) -> tuple[float, float]:
    """Both ends of nine tenths of a log-normal distribution of this mean, which never lies below 0."""
    if not mean:
        return 0.0, 0.0
    misfit = MISFIT + MISFIT_EARLY * (1 - share)
    variance = misfit**2 + math.log1p((spread / mean) ** 2)
    low, high = (mean * math.exp(side * NINETY * math.sqrt(variance) - variance / 2) for side in (-1, 1))
    return math.floor(low), min(math.ceil(max(high, mean)), most)
