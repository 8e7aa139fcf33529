"""Lease: politeness slots and leases for the rows of an answer, and how leases end without a fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import f64s, flag, i64s, kernel, one_f64, one_i64, u8s
from crawlguide.core.types import DEFERRED, GRANTED, TAKEN, Grants
from crawlguide.store.crawls import Crawls
from crawlguide.store.tables.leases import Lease
from crawlguide.store.tables.politeness import paced
from crawlguide.store.tables.rows import LEASED, QUEUED, TABLES

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I64, U8
    from crawlguide.core.types import Batch, Crawl, LeaseTerms
    from crawlguide.store.frontier import Frontier


class Leasing(Crawls):
    async def reserve(self, crawl: Crawl, batch: Batch, terms: LeaseTerms) -> Grants:
        """Lease what is still waiting and polite to fetch; the hosts' slots are taken in the order of the rows."""
        self.before_change(terms.at)
        frontier = self.frontier(crawl)
        rows = frontier.index.find(batch.id)
        outcome, start = np.empty(len(rows), np.uint8), np.empty(len(rows))
        count = grant_slots(
            rows, frontier.tables, terms.at, terms.delay_s, terms.factor, terms.horizon_s, terms.strict, terms.limit,
            outcome, start,
        )  # fmt: skip
        if count:
            granted = slice(None) if count == len(rows) else np.flatnonzero(outcome == GRANTED)
            starts = dict(zip(rows[granted].tolist(), start[granted].tolist(), strict=True))
            expires = terms.at + terms.lease_s
            lease = Lease(terms.crawler_id, terms.request_id, expires, starts, terms.strict)
            frontier.lease(rows[granted], lease)
        if count < len(rows):
            _find_own(frontier, rows, terms, outcome, start)
        return Grants(outcome, start, frontier.metadata(rows))

    async def release(self, crawl: Crawl, crawler_id: str) -> int:
        frontier = self.frontier(crawl)
        rows = frontier.leases.release(crawler_id)
        frontier.requeue(rows)
        return len(rows)

    async def held(self, crawl: Crawl, crawler_id: str, at: float) -> int:
        frontier = self.frontier(crawl)
        frontier.wake(at)
        return frontier.leases.count(crawler_id)

    async def expire(self, crawl: Crawl, at: float) -> int:
        data = self.data(crawl)
        before = len(data.frontier.leases)
        data.frontier.wake(at)
        data.answers.expire(at)
        data.reported.expire(at)
        return before - len(data.frontier.leases)


def _find_own(frontier: Frontier, rows: I64, terms: LeaseTerms, outcome: U8, start: F64) -> None:
    """A request that comes again gets what it holds already."""
    for number in np.flatnonzero(outcome == TAKEN).tolist():
        lease = frontier.leases.by_row.get(int(rows[number]))
        if lease and terms.request_id and lease.holder == (terms.crawler_id, terms.request_id):
            outcome[number], start[number] = GRANTED, lease.rows[int(rows[number])]


@kernel(one_i64(i64s, TABLES, one_f64, one_f64, one_f64, one_f64, flag, one_i64, u8s, f64s))
def grant_slots(rows, tables, at, delay, factor, horizon, strict, limit, outcome, start):  # type: ignore[no-untyped-def]
    """slot = max(now, next fetch, end of a block, last fetch + delay), for each row after those before it.

    A row that does not wait any more is taken by somebody else. One whose slot lies beyond the horizon is deferred,
    as is one whose politeness queue has all the leases it may have. Returns how many rows were leased.
    """
    count = 0
    for number in range(len(rows)):
        row = rows[number]
        start[number] = at
        outcome[number] = TAKEN
        if row < 0 or tables.rows[row].state != QUEUED:
            continue
        host = tables.hosts[tables.rows[row].host]
        queue = tables.politeness[host.pace]
        own = paced(delay, queue.delay, factor, queue.median_ms)
        slot = max(at, queue.next_fetch, queue.blocked, queue.last + own)
        slot = at + np.ceil((slot - at) * 1_000.0 - 1e-3) / 1_000.0  # as the crawler is told it: in milliseconds
        full = (strict and queue.leases > 0) or (queue.limit > 0 and queue.leases >= queue.limit)
        full = full or (limit > 0 and queue.leases >= limit)
        start[number] = max(slot, at + own) if full else slot
        outcome[number] = DEFERRED
        if full or slot > at + horizon:
            continue
        outcome[number] = GRANTED
        count += 1
        tables.rows[row].state = LEASED
        tables.domain_pages[host.domain] += 1
        queue.last = slot
        queue.next_fetch = slot + own
        queue.leases += 1
        tables.opens[host.pace] = max(slot + own, queue.blocked)
    return count
