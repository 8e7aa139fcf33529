"""The politeness slots and leases of an answer, taken in its order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import f64s, flag, i64s, kernel, one_f64, one_i64, records, u8s
from crawlguide.core.types import DEFERRED, TAKEN, Grants
from crawlguide.core.types import LEASED as GRANTED
from crawlguide.store.moves import record
from crawlguide.store.tables.leases import Lease
from crawlguide.store.tables.pace import paced
from crawlguide.store.tables.rows import DONE, DROPPED, HOST, LEASED, PACE, QUEUED, ROW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64, I64, U8, U64
    from crawlguide.core.types import LeaseTerms
    from crawlguide.store.frontier import Frontier


@kernel(
    one_i64(
        i64s, records(ROW), records(HOST), records(PACE), f64s, i64s, one_f64, one_f64, one_f64, one_f64, flag, one_i64,
        u8s, f64s,
    )
)  # fmt: skip
def grant_slots(  # type: ignore[no-untyped-def]
    rows, table, hosts, pace, opens, domain_pages, at, delay, factor, horizon, strict, limit, outcome, start
):
    """slot = max(now, next fetch, end of a block, last fetch + delay), for each row after those before it.

    A row that does not wait any more is taken by somebody else. One whose slot lies beyond the horizon is deferred,
    as is one of a queue that already gave out all it may. Returns how many rows were leased.
    """
    count = 0
    for number in range(len(rows)):
        row = rows[number]
        start[number] = at
        outcome[number] = TAKEN
        if row < 0 or table[row].state != QUEUED:
            continue
        host = hosts[table[row].host]
        queue, mine = host.pace, pace[host.pace]
        own = paced(delay if np.isnan(mine.delay) else mine.delay, factor, mine.median_ms)
        slot = max(at, mine.next_fetch, mine.blocked, mine.last + own)
        slot = at + np.ceil((slot - at) * 1_000.0 - 1e-3) / 1_000.0  # as the crawler is told it: in milliseconds
        full = (strict and mine.leases > 0) or (mine.limit > 0 and mine.leases >= mine.limit)
        full = full or (limit > 0 and mine.leases >= limit)
        start[number] = max(slot, at + own) if full else slot
        outcome[number] = DEFERRED
        if full or slot > at + horizon:
            continue
        outcome[number] = GRANTED
        count += 1
        table[row].state = LEASED
        domain_pages[host.domain] += 1
        pace[queue].last = slot
        pace[queue].next_fetch = slot + own
        pace[queue].leases += 1
        opens[queue] = max(slot + own, mine.blocked)
    return count


# How rows are handed out and come back: by a tell, by their crawler, or by themselves when the time is over.


def reserve(frontier: Frontier, ids: U64, terms: LeaseTerms) -> Grants:
    """Lease what is still waiting and polite to fetch; the hosts' slots are taken in the order of the rows."""
    rows, hosts, pace = frontier.index.find(ids), frontier.hosts, frontier.pace
    outcome, start = np.empty(len(ids), np.uint8), np.empty(len(ids))
    count = grant_slots(
        rows, frontier.table, hosts.rows, pace.rows, pace.opens, hosts.domain_pages,
        terms.at, terms.delay_s, terms.factor, terms.horizon_s, terms.strict, terms.limit, outcome, start,
    )  # fmt: skip
    if count:
        granted = slice(None) if count == len(rows) else np.flatnonzero(outcome == GRANTED)
        _leased(frontier, rows[granted], start[granted], terms)
    if count < len(rows):
        _find_own(frontier, rows, terms, outcome, start)
    return Grants(outcome, start, frontier.notes(rows))


def _find_own(frontier: Frontier, rows: I64, terms: LeaseTerms, outcome: U8, start: F64) -> None:
    """A request that comes again gets what it holds already."""
    for number in np.flatnonzero(outcome == TAKEN).tolist():
        lease = frontier.leases.by_row.get(int(rows[number]))
        if lease and terms.request_id and lease.holder == (terms.crawler_id, terms.request_id):
            outcome[number], start[number] = GRANTED, lease.rows[int(rows[number])]


def _leased(frontier: Frontier, rows: I64, start: F64, terms: LeaseTerms) -> None:
    frontier.changes.given(rows)
    frontier.queues.take_out(rows.astype(np.int32))
    frontier.states[QUEUED] -= len(rows)
    frontier.states[LEASED] += len(rows)
    expires = terms.at + terms.lease_s
    starts = dict(zip(rows.tolist(), start.tolist(), strict=True))
    frontier.leases.add(Lease(terms.crawler_id, terms.request_id, expires, starts, terms.strict))
    if terms.strict:
        frontier.queues.shut(frontier.table["host"][rows], np.full(len(rows), expires))


def release(frontier: Frontier, crawler_id: str) -> int:
    rows = frontier.leases.held_by(crawler_id)
    if rows:
        _back(frontier, rows)
    return len(rows)


def give_back(frontier: Frontier, row: int, crawler_id: str) -> bool:
    """A crawler returns one lease unjudged; False if it does not hold it."""
    lease = frontier.leases.by_row.get(row)
    if lease is None or lease.crawler_id != crawler_id:
        return False
    frontier.leases.end([row])
    _back(frontier, [row])
    return True


def end(frontier: Frontier, rows: Sequence[int]) -> None:
    """Leases end because the fetch was told; the caller decides what becomes of the rows."""
    ended = frontier.leases.end(rows)
    if ended:
        _leave(frontier, np.array(ended))


def _back(frontier: Frontier, rows: Sequence[int]) -> None:
    back = np.array(rows)
    _leave(frontier, back)
    frontier.enqueue(back)


def _leave(frontier: Frontier, rows: I64) -> None:
    hosts = np.empty(len(rows), np.int32)
    record.leave(rows, frontier.table, frontier.hosts.rows, frontier.pace.rows, frontier.hosts.domain_pages, hosts)
    frontier.queues.open(hosts)


def finish(frontier: Frontier, row: int) -> None:
    """One row is done, wherever it was."""
    here = np.array([row])
    if frontier.table["state"][row] == DROPPED:
        frontier.undrop(here)
    end(frontier, [row])
    frontier.queues.remove(here.astype(np.int32))
    frontier.move(here, DONE)


def wake(frontier: Frontier, at: float) -> None:
    """Ended leases and rows whose hour has come wait for their turn again, a bounded number of these a call."""
    ended = frontier.leases.expired(at)
    if ended:
        _back(frontier, ended)
    due = frontier.queues.due(at)
    if len(due):
        frontier.enqueue(due.astype(np.int64))
