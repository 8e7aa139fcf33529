"""The figures of one replay: how much of the time copies were current, how old they were, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I64
    from crawlguide.lab.freshness.histories import Histories
    from crawlguide.lab.freshness.replay import Log


@dataclass(frozen=True)
class Measured:
    """For each day. Freshness and age are means over pages and time, weighted by importance."""

    weight: F64  # importance that counted, in page days
    freshness: F64
    age: F64  # days since the first change that a copy lacks; 0 for a current one
    requests: F64
    for_nothing: F64  # requests that saw no change


def measured(histories: Histories, log: Log) -> Measured:
    edges = np.arange(histories.days + 1, dtype=np.float64)
    order = np.lexsort((log.at, log.page))
    page, at, seen = log.page[order], log.at[order], log.seen[order]
    ends = histories.counts_until[page]
    is_last = np.append(page[1:] != page[:-1], True)
    until = np.minimum(np.where(is_last, ends, np.append(at[1:], 0.0)), ends)
    at = np.minimum(at, ends)  # who visits a page that counts no more has had it for nothing
    stale = np.clip(_next_change(histories, page, seen), at, until)
    weight = histories.importance[page]
    counted = _ramp(at, weight, edges) - _ramp(until, weight, edges)
    current = _ramp(at, weight, edges) - _ramp(stale, weight, edges)
    waited = until - stale
    aged = _bend(stale, weight, edges) - _bend(until, weight, edges) - _ramp(until, weight * waited, edges)
    total = np.diff(counted)
    days = np.minimum(log.at[~log.is_first].astype(np.int64), histories.days - 1)
    return Measured(
        weight=total,
        freshness=np.diff(current) / np.maximum(total, 1e-12),
        age=np.diff(aged) / np.maximum(total, 1e-12),
        requests=np.bincount(days, minlength=histories.days).astype(np.float64),
        for_nothing=np.bincount(days, ~log.changed[~log.is_first], histories.days),
    )


def expected(histories: Histories, log: Log) -> F64:
    """The freshness of each day as it is expected from when pages were visited, where their true rates are known.

    Between two visits nobody knows more than the rate: a copy is current for (1 − e^(−Δt)) / Δ of t days on average.
    This has the same mean as what was measured, and varies less.
    """
    if histories.rates is None:
        raise ValueError("expected a web whose true rates are known")
    order = np.lexsort((log.at, log.page))
    page, at = log.page[order], log.at[order]
    is_last = np.append(page[1:] != page[:-1], True)
    until = np.where(is_last, histories.days, np.append(at[1:], 0.0))
    every = [_current(histories, page, at, until, float(day)) for day in range(histories.days)]
    return np.array(every) / histories.importance.sum()


def _current(histories: Histories, page: I64, at: F64, until: F64, day: float) -> float:
    """Importance times time in which copies are current on one day: visits that reach into it, by their rates."""
    rows = np.flatnonzero((until > day) & (at < day + 1.0))
    rate = histories.rates.on(day)[page[rows]]
    since = np.maximum(day - at[rows], 0.0)
    till = np.minimum(until[rows], day + 1.0) - at[rows]
    current = (np.exp(-rate * since) - np.exp(-rate * till)) / rate
    return float(histories.importance[page[rows]] @ current)


def kept(histories: Histories, log: Log, limit: float) -> float:
    """The share of the time of all pages in which their last visit was at most so many days ago."""
    order = np.lexsort((log.at, log.page))
    page, at = log.page[order], log.at[order]
    ends = histories.counts_until[page]
    is_last = np.append(page[1:] != page[:-1], True)
    span = np.maximum(np.minimum(np.where(is_last, ends, np.append(at[1:], 0.0)), ends) - at, 0.0)
    return float(np.minimum(span, limit).sum() / span.sum())


def mean(measured: Measured, since: int = 0, until: int | None = None) -> tuple[float, float]:
    """Freshness and age over some of the days."""
    days = slice(since, until)
    weight = measured.weight[days]
    both = (np.average(column[days], weights=weight) for column in (measured.freshness, measured.age))
    freshness, age = map(float, both)
    return freshness, age


def _next_change(histories: Histories, page: F64, seen: F64) -> F64:
    """When the page had its first change that this visit did not see."""
    place = histories.first[page] + seen
    at = np.append(histories.at, np.inf)
    changes: F64 = np.where(place < histories.first[page + 1], at[np.minimum(place, len(at) - 1)], np.inf)
    return changes


def _ramp(since: F64, weight: F64, edges: F64) -> F64:
    """Σ weight · max(0, edge − since), for every edge."""
    order, count = _before(since, edges)
    slope, shift = _sums(weight[order]), _sums((weight * since)[order])
    return slope[count] * edges - shift[count]


def _bend(since: F64, weight: F64, edges: F64) -> F64:
    """Σ weight · max(0, edge − since)² / 2, for every edge."""
    order, count = _before(since, edges)
    none, one, two = (_sums((weight * since**power)[order])[count] for power in (0, 1, 2))
    return (none * edges**2 - 2.0 * one * edges + two) / 2.0


def _before(since: F64, edges: F64) -> tuple[F64, F64]:
    order = np.argsort(since, kind="stable")
    return order, np.searchsorted(since[order], edges)


def _sums(values: F64) -> F64:
    return np.concatenate([[0.0], np.cumsum(values)])
