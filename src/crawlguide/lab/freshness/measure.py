"""The figures of one replay: how much of the time copies were current, how old they were, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I64
    from crawlguide.lab.freshness.histories import DailyRates, Histories
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
        for_nothing=np.bincount(days, ~log.changed[~log.is_first], histories.days).astype(np.float64),
    )


def expected(histories: Histories, rates: DailyRates, log: Log) -> F64:
    """The freshness of each day as it is expected from when pages were visited, with the true rates.

    Between two visits nobody knows more than the rate: a copy is current for (1 − e^(−Δt)) / Δ of t days on average.
    This has the same mean as what was measured, and varies less.
    """
    order = np.lexsort((log.at, log.page))
    page, at = log.page[order], log.at[order]
    is_last = np.append(page[1:] != page[:-1], True)
    until = np.where(is_last, histories.days, np.append(at[1:], 0.0))
    current = np.zeros(histories.days)
    for day in range(histories.days):
        rows = np.flatnonzero((until > day) & (at < day + 1.0))
        rate = rates.on(day)[page[rows]]
        since, till = np.maximum(day - at[rows], 0.0), np.minimum(until[rows], day + 1.0) - at[rows]
        current[day] = histories.importance[page[rows]] @ ((np.exp(-rate * since) - np.exp(-rate * till)) / rate)
    shares: F64 = current / histories.importance.sum()
    return shares


def mean(measured: Measured, since: int = 0, until: int | None = None) -> tuple[float, float]:
    """Freshness and age over some of the days."""
    days = slice(since, until)
    weight = measured.weight[days]
    both = (np.average(column[days], weights=weight) for column in (measured.freshness, measured.age))
    freshness, age = map(float, both)
    return freshness, age


def _next_change(histories: Histories, page: I64, seen: I64) -> F64:
    """When the page had its first change that this visit did not see."""
    place = histories.first[page] + seen
    at = np.append(histories.at, np.inf)
    changes: F64 = np.where(place < histories.first[page + 1], at[np.minimum(place, len(at) - 1)], np.inf)
    return changes


def _ramp(since: F64, weight: F64, edges: F64) -> F64:
    """Σ weight · max(0, edge − since), for every edge."""
    order, count = _before(since, edges)
    none, one = (_sums((weight * since**power)[order])[count] for power in (0, 1))
    ramp: F64 = none * edges - one
    return ramp


def _bend(since: F64, weight: F64, edges: F64) -> F64:
    """Σ weight · max(0, edge − since)² / 2, for every edge."""
    order, count = _before(since, edges)
    none, one, two = (_sums((weight * since**power)[order])[count] for power in (0, 1, 2))
    bend: F64 = (none * edges**2 - 2.0 * one * edges + two) / 2.0
    return bend


def _before(since: F64, edges: F64) -> tuple[I64, I64]:
    """Everything in the order of time, and how much of it is before each edge."""
    order = np.argsort(since, kind="stable")
    return order, np.searchsorted(since[order], edges).astype(np.int64)


def _sums(values: F64) -> F64:
    return np.concatenate([[0.0], np.cumsum(values)])
