"""The crawl value: what a fetch is worth, when a page is worth a price, and the best that is possible with known rates.

    V(τ) = (μ/Δ) · (1 − e^(−Δτ)(1 + Δτ))

is what one more crawl of a page adds to the time in which our copy of it is current, τ after the last one, where it
changes Δ times a day and weighs μ. It rises from 0 to μ/Δ. Fetching whatever is worth a price λ, and no more, is the
greedy form of the best periodic schedule. All gaps here are in days, and values are in (weighted) days.
"""

from __future__ import annotations

from math import exp, inf, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core.kernels import f64s, kernel, nothing, one_f64, part

if TYPE_CHECKING:
    from crawlguide.core.tables import F64

LONGEST_GAP = 3_650.0  # days: nothing is planned for later
SHORTEST_GAP = 1e-5


@part
def value_at(rate, gap):  # type: ignore[no-untyped-def]
    """(1 − e^(−Δτ)(1 + Δτ)) / Δ; for small Δτ its series, where the difference would cancel."""
    passed = rate * gap
    if passed < 1e-3:
        return rate * gap * gap * (0.5 - passed / 3.0)
    return (1.0 - exp(-passed) * (1.0 + passed)) / rate


@part
def fresh_at(rate, gap):  # type: ignore[no-untyped-def]
    """The share of time in which a page that is fetched every `gap` days is current: (1 − e^(−Δτ)) / Δτ."""
    passed = rate * gap
    return 1.0 - 0.5 * passed if passed < 1e-6 else (1.0 - exp(-passed)) / passed


@part
def gap_at_price(rate, price):  # type: ignore[no-untyped-def]
    """After how many days V reaches a price; infinite if it never does."""
    if price * rate >= 1.0:
        return inf
    low, high = SHORTEST_GAP, LONGEST_GAP
    if value_at(rate, high) <= price:
        return inf
    for _ in range(60):
        middle = sqrt(low * high)
        if value_at(rate, middle) < price:
            low = middle
        else:
            high = middle
    return high


class Optimum(NamedTuple):
    """The best periodic schedule with known rates."""

    price: float
    gap: F64  # days between two fetches of each page; infinite where it is not fetched again
    freshness: float  # weighted share of time in which a copy is current


def periodic_optimum(rate: F64, weight: F64, per_day: float) -> Optimum:
    """The price at which so many fetches a day are made, and what it buys (bisection of the price)."""
    rate, weight = np.ascontiguousarray(rate, np.float64), np.ascontiguousarray(weight, np.float64)
    low, high = 1e-12, float(np.max(weight / rate, initial=1e-12))
    for _ in range(60):
        price = (low * high) ** 0.5
        if np.sum(1.0 / gaps_at_price(rate, weight, price)) > per_day:
            low = price
        else:
            high = price
    gap = gaps_at_price(rate, weight, high)
    return Optimum(high, gap, float(freshness_at(rate, gap) @ weight / weight.sum()))


def values(rate: F64, weight: F64, gap: F64) -> F64:
    """V(τ) of pages with known rates, so many days after their last fetch."""
    out = np.empty(len(rate))
    write_values(rate, weight, gap, out)
    return out


def gaps_at_price(rate: F64, weight: F64, price: float) -> F64:
    """After how many days each page is worth a price; infinite for those that never are."""
    out = np.empty(len(rate))
    write_gaps(rate, weight, price, out)
    return out


def freshness_at(rate: F64, gap: F64) -> F64:
    """The share of time in which pages that are fetched at such gaps are current; 0 for an infinite one."""
    out = np.empty(len(rate))
    write_freshness(rate, gap, out)
    return out


@kernel(nothing(f64s, f64s, f64s, f64s))
def write_values(rate, weight, gap, out):  # type: ignore[no-untyped-def]
    for row in range(len(rate)):
        out[row] = weight[row] * value_at(rate[row], max(gap[row], 0.0))


@kernel(nothing(f64s, f64s, one_f64, f64s))
def write_gaps(rate, weight, price, out):  # type: ignore[no-untyped-def]
    for row in range(len(rate)):
        out[row] = gap_at_price(rate[row], price / weight[row]) if weight[row] > 0.0 else inf


@kernel(nothing(f64s, f64s, f64s))
def write_freshness(rate, gap, out):  # type: ignore[no-untyped-def]
    for row in range(len(rate)):
        out[row] = 0.0 if gap[row] == inf else fresh_at(rate[row], gap[row])
