"""What rows are worth as things stand, and the priority with which they wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core.columns import changed
from crawlguide.core.kernels import f64s, flag, kernel, one_i64

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, U64
    from crawlguide.core.types import Batch
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl
    from crawlguide.strategies.composed.guard import Opinion

MOVED = 0.05  # by so much of itself a priority has to change to be written again


class Valuation(NamedTuple):
    """What each row is worth, what is hoped to be learned from it, and with which priority it waits."""

    value: F64
    exploration: F64
    priority: F64


def valued(active: ActiveCrawl, batch: Batch, opinion: Opinion) -> Valuation:
    """What the predictors say, weighed by the rules; except where a person set the priority by hand."""
    weighing, free = active.weighing, np.isnan(batch.manual_priority)
    value = weighing.weighed(opinion.value, batch)
    hope = np.zeros(len(batch)) if opinion.exploration is None else weighing.weighed(opinion.exploration, batch)
    waits = value if opinion.at_rest is None else weighing.weighed(opinion.at_rest, batch)
    if not free.all():
        value, waits = np.where(free, value, batch.manual_priority), np.where(free, waits, batch.manual_priority)
        hope = np.where(free, hope, 0.0)
    return Valuation(value, hope, waits if opinion.exploration is None else waits + hope)


def priority_at_rest(active: ActiveCrawl, batch: Batch) -> F64:
    """The priority with which a URL waits."""
    return valued(active, batch, active.strategy.whole.judge(batch, waiting=True)).priority


def changed_priorities(batch: Batch, worth: F64) -> tuple[U64, F64]:
    """What was looked at waits from now on by what it is worth now: what sank makes room for others."""
    return changed(batch.id, worth, batch.priority, MOVED)


def best_of(worth: F64, wanted: int) -> float:
    """What the best of these are worth together."""
    return float(np.sort(worth)[-wanted:].sum())


def stands(worth: F64, priority: F64, wanted: int) -> bool:
    """Whether the best of these are still worth as much as what waits behind them was thought to be."""
    return bool(standing(worth, priority, wanted))  # type: ignore[no-untyped-call]


@kernel(flag(f64s, f64s, one_i64))
def standing(worth, priority, wanted):  # type: ignore[no-untyped-def]
    """Some rows were not gathered for their priority, so the lowest say nothing."""
    behind, below = np.partition(priority, len(priority) // 5)[len(priority) // 5], 0
    for row in range(len(worth)):
        below += worth[row] < behind
    return below <= max(len(worth) - wanted, 0)
