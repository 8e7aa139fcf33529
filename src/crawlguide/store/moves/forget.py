"""Forget: what an operator purges, and pages that were done or dropped long ago, or are too many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.turns import let_others
from crawlguide.store import views
from crawlguide.store.crawls import Crawls
from crawlguide.store.tables.rows import DONE, DROPPED, LEASED

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I64, Mask
    from crawlguide.core.types import Crawl
    from crawlguide.store.frontier import Frontier

SWEPT_AT_ONCE = 20_000
PURGED_AT_ONCE = 500


class Forgetting(Crawls):
    async def purge(self, crawl: Crawl, state: str | None, host: str | None) -> int:
        """Forget the matching rows, except leased ones, a bounded number at a time."""
        count = 0
        for start in range(0, self.frontier(crawl).index.rows, PURGED_AT_ONCE):
            frontier = self.frontier(crawl)
            rows = views.matching(frontier, state, host, start, start + PURGED_AT_ONCE)
            rows = rows[frontier.table["state"][rows] != LEASED]
            if len(rows):
                frontier.forget(rows)
            count += len(rows)
            await self.commit(durable=False)  # so that no commit has very much to write at once
            await let_others()  # others are served during a long purge, and the crawl may be deleted
        return count

    async def forget_old(self, crawl: Crawl, at: float) -> int:
        """Look at the next few rows and forget what is too old; over quota the oldest part goes as well."""
        frontier = self.frontier(crawl)
        self.politeness.forget_idle(at)
        start = frontier.swept if frontier.swept < frontier.index.rows else 0
        frontier.swept = start + SWEPT_AT_ONCE
        rows, last = _past(frontier, start)
        old = last < at - frontier.quota.keep_done_s
        over = int(frontier.states[DONE] + frontier.states[DROPPED]) - frontier.quota.done
        if over > 0:
            old |= _oldest(last, over / (over + frontier.quota.done))
        if old.any():
            frontier.counts["forgotten"] += int(old.sum())
            frontier.forget(rows[old])
        return int(old.sum())


def _past(frontier: Frontier, start: int) -> tuple[I64, F64]:
    """Rows that are done or dropped and not scheduled again, and when they last mattered."""
    table = frontier.table[start : min(start + SWEPT_AT_ONCE, frontier.index.rows)]
    past = ((table["state"] == DONE) | (table["state"] == DROPPED)) & np.isnan(table["due"])
    last = np.where(np.isnan(table["fetched"]), table["discovered"], table["fetched"])
    return start + np.flatnonzero(past), last[past]


def _oldest(last: F64, fraction: float) -> Mask:
    """The oldest part of these instants: every stretch of the table gives its share."""
    count = int(np.ceil(fraction * len(last)))
    oldest = np.zeros(len(last), np.bool_)
    oldest[np.argsort(last, kind="stable")[:count]] = True
    return oldest
