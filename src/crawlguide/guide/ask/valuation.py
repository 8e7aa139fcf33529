"""What rows are worth as things stand, and the priority with which they wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Batch
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl
    from crawlguide.strategies.composed.guard import Opinion

MOVED = 0.05  # by so much of itself a priority has to change to be written again


class Valuation(NamedTuple):
    """The value of each row, the exploration bonus on top of it, and the priority with which the row waits."""

    value: F64
    exploration: F64
    priority: F64


def valued(active: ActiveCrawl, batch: Batch, opinion: Opinion) -> Valuation:
    """What the predictors say, weighed by the rules; except where a person set the priority by hand."""
    manual_factors, free = active.manual_factors, np.isnan(batch.manual_priority)
    value = manual_factors.apply(opinion.value, batch)
    bonus = np.zeros(len(batch)) if opinion.exploration is None else manual_factors.apply(opinion.exploration, batch)
    waits = value if opinion.at_rest is None else manual_factors.apply(opinion.at_rest, batch)
    if not free.all():
        value, waits = np.where(free, value, batch.manual_priority), np.where(free, waits, batch.manual_priority)
        bonus = np.where(free, bonus, 0.0)
    priority = waits if opinion.exploration is None else waits + bonus
    if active.refresher is not None:  # what is fetched again stays where it was put
        priority = np.where(active.refresher.is_brought(batch.id), np.maximum(batch.priority, priority), priority)
    return Valuation(value, bonus, priority)


def priority_at_rest(active: ActiveCrawl, batch: Batch) -> F64:
    """The priority with which a URL waits."""
    return valued(active, batch, active.strategy.guarded.judge(batch, "waiting")).priority
