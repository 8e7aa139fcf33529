"""Rows of URLs as a batch: their facts, the distinct hosts among them, and the facts of those.

The places below are those of the facts in core.types.Batch and core.types.Hosts; a test compares them by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core import urls
from crawlguide.core.errors import MalformedRequest
from crawlguide.core.kernels import f64s, i32s, i64s, kernel, matrix, one_i64, part, records
from crawlguide.core.tables import Lookup
from crawlguide.core.types import BATCH_FACTS, HOST_FACTS, Batch, Hosts, UrlRecord
from crawlguide.store.tables.rows import DROPPED, FREE, HOST, LEASED, PACE, QUEUED, ROW, STATES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.tables import F64, I64, Mask
    from crawlguide.store.frontier import Frontier


@part
def note_url(facts, number, row, queue):  # type: ignore[no-untyped-def]
    facts[0, number] = row.arm
    facts[1, number] = row.depth
    facts[2, number] = row.sequence
    facts[3, number] = row.discovered
    facts[4, number] = row.fetched
    facts[5, number] = row.parents
    facts[6, number] = row.parent_sum
    facts[7, number] = row.parent_best
    facts[8, number] = row.given
    facts[9, number] = row.priority
    facts[10, number] = queue.median_ms
    facts[11, number] = queue.median_bytes
    facts[12, number] = row.priority
    facts[13, number] = row.priority


@part
def note_host(facts, number, host, queue, domain_pages, opens):  # type: ignore[no-untyped-def]
    facts[0, number] = host.pages
    facts[1, number] = host.failures
    facts[2, number] = host.errors
    facts[3, number] = host.judged
    facts[4, number] = host.relevance_sum
    facts[5, number] = host.domain
    facts[6, number] = domain_pages
    facts[7, number] = queue.median_ms
    facts[8, number] = queue.median_bytes
    facts[9, number] = queue.delay
    facts[10, number] = queue.last
    facts[11, number] = opens
    facts[12, number] = queue.leases
    facts[13, number] = queue.limit


@part
def fetch_ahead(rows, table, hosts, pace, host, queue):  # type: ignore[no-untyped-def]
    """Touch what is needed soon, each kind in a loop of its own: so the waits for memory overlap."""
    for number in range(len(rows)):
        host[number] = table[rows[number]].host
    for number in range(len(rows)):
        queue[number] = hosts[host[number]].pace
    touched = 0
    for number in range(len(rows)):
        touched += pace[queue[number]].fetches
    return touched


@kernel(one_i64(i64s, records(ROW), records(HOST), records(PACE), f64s, i64s, i32s, i64s, i64s, matrix, matrix))
def join(rows, table, hosts, pace, opens, domain_pages, place, host, numbers, facts, host_facts):  # type: ignore[no-untyped-def]
    """Fill in the facts of rows and of their hosts, which are numbered in the order of their first row.

    `place` is a column of zeros over all hosts, and is left so. Returns how many distinct hosts there are.
    """
    count = 0 * fetch_ahead(rows, table, hosts, pace, host, numbers)
    for number in range(len(rows)):
        row = table[rows[number]]
        if place[row.host] == 0:
            numbers[count] = row.host
            count += 1
            place[row.host] = count
        host[number] = place[row.host] - 1
        note_url(facts, number, row, pace[hosts[row.host].pace])
    for number in range(count):
        mine = hosts[numbers[number]]
        place[numbers[number]] = 0
        note_host(host_facts, number, mine, pace[mine.pace], domain_pages[mine.domain], opens[mine.pace])
    return count


# Rows shown to others: as a batch for the corridor, as records for people.

SCANNED_AT_ONCE = 100_000
HOSTS_AT_ONCE = 10_000
COUNTED = ("asks", "assigned", "fetches", "failed", "relevant", "discovered", "evicted", "forgotten")


def batch(frontier: Frontier, rows: I64) -> Batch:
    """The given rows as columns, joined with the rows of their hosts."""
    count, hosts, pace = len(rows), frontier.hosts, frontier.pace
    host, numbers = np.empty(count, np.int64), np.empty(count, np.int64)
    facts, host_facts = np.empty((BATCH_FACTS, count)), np.empty((HOST_FACTS, count))
    distinct = join(
        rows, frontier.table, hosts.rows, pace.rows, pace.opens, hosts.domain_pages, hosts.scratch,
        host, numbers, facts, host_facts,
    )  # fmt: skip
    known = Hosts(Lookup(hosts.names, numbers[:distinct]), host_facts[:, :distinct])
    return Batch(Lookup(frontier.urls, rows), frontier.index.ids.take(rows), host, facts, known)


def record(frontier: Frontier, row: int) -> UrlRecord:
    taken = frontier.table[row]
    state = int(taken["state"])
    lease = frontier.leases.by_row.get(row) if state == LEASED else None
    return UrlRecord(
        url=frontier.urls.of(row),
        state=STATES[state],
        reason=frontier.reasons[int(taken["reason"])] if state == DROPPED else None,
        priority=float(taken["priority"]),
        crawler_id=lease.crawler_id if lease else None,
        lease_expires=lease.expires if lease else None,
        status=int(taken["status"]) or None,
        fetched=None if np.isnan(taken["fetched"]) else float(taken["fetched"]),
    )


def matching(frontier: Frontier, state: str | None, host: str | None, start: int, end: int) -> I64:
    """Rows from `start` up to `end` in that state and of that host (None: any)."""
    table = frontier.table[start : min(end, frontier.index.rows)]
    wanted: Mask = table["state"] < FREE if state is None else table["state"] == STATES.index(state)
    if host is not None:
        number = frontier.hosts.find(host)
        wanted = wanted & (table["host"] == (-1 if number is None else number))
    return start + np.flatnonzero(wanted)


def scan(
    frontier: Frontier, state: str | None, host: str | None, limit: int, cursor: str | None
) -> tuple[list[UrlRecord], str | None]:
    """Up to `limit` matching rows from a cursor on, looking at a bounded number; where to go on, None at the end."""
    start = _start(cursor)
    end = min(start + SCANNED_AT_ONCE, frontier.index.rows)
    rows = matching(frontier, state, host, start, end)
    if len(rows) > limit:
        rows, end = rows[:limit], int(rows[limit])
    records = [record(frontier, row) for row in rows.tolist()]
    return records, str(end) if end < frontier.index.rows else None


def _start(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isdecimal() or len(cursor) > 18:
        raise MalformedRequest(f"cursor: expected one that an earlier page gave, got {cursor[:40]!r}", field="cursor")
    return int(cursor)


def count_above(frontier: Frontier, priority: float, start: int) -> tuple[int, int | None]:
    """Of the next rows how many wait with a higher priority; where to go on, None at the end."""
    end = min(start + SCANNED_AT_ONCE, frontier.index.rows)
    table = frontier.table[start:end]
    above = int(np.count_nonzero((table["state"] == QUEUED) & (table["priority"] > priority)))
    return above, end if end < frontier.index.rows else None


def stats(frontier: Frontier) -> Mapping[str, Any]:
    """How many rows are in each state, and what was counted."""
    numbers = dict(zip(STATES[:3], frontier.states.tolist(), strict=False))
    dropped = {reason: count for reason, count in frontier.dropped.items() if count}
    return {**numbers, "dropped": dropped, "hosts": len(frontier.hosts)} | {k: frontier.counts[k] for k in COUNTED}


def wait(frontier: Frontier, at: float) -> float | None:
    """Seconds until the first of: a host opens, a row's hour comes, a lease ends."""
    if frontier.queues.any_open():
        return 0.0
    ends = (frontier.queues.next_opening(), frontier.queues.next_due(), frontier.leases.next_end())
    instants = [end for end in ends if end is not None and end < np.inf]
    return max(min(instants) - at, 0.0) if instants else None


def hosts(frontier: Frontier, limit: int) -> tuple[Hosts, I64, F64]:
    """Hosts that failed most, then those on which most URLs wait; with how many wait, and until when each is withheld.

    Looks at the hosts that became known first, up to SCANNED_AT_ONCE of them: so it costs no more than a scan does.
    """
    frontier.queues.fit(0, len(frontier.hosts.rows))
    own = frontier.hosts.rows[: min(frontier.hosts.end, SCANNED_AT_ONCE)]
    waiting = frontier.queues.sizes[: len(own)].astype(np.int64)
    failing = _largest(own["failures"], max(1, limit // 2))
    busy = _largest(waiting + own["pages"] / (own["pages"] + 1.0), limit)  # of equals the one that gave more
    chosen = np.concatenate([failing, busy[~np.isin(busy, failing)]])[:limit]
    return _host_facts(frontier, chosen), waiting[chosen], own["withheld"][chosen]


def open_hosts(
    frontier: Frontier, domain: str | None, until: float, limit: int, start: int
) -> tuple[list[str], int | None]:
    """Up to `limit` hosts on which URLs wait and that open by `until`; looks at HOSTS_AT_ONCE of them at most."""
    frontier.queues.fit(0, len(frontier.hosts.rows))
    if domain is None:
        found = np.arange(start, min(start + HOSTS_AT_ONCE, frontier.hosts.end))
        last = frontier.hosts.end
    else:
        mine = frontier.hosts.of_domain(urls.domain_hash(domain))
        found, last = np.array(mine[start : start + HOSTS_AT_ONCE], np.int64), len(mine)
    opens = np.maximum(frontier.hosts.rows["withheld"][found], frontier.pace.opens[frontier.hosts.pace_row[found]])
    good = np.flatnonzero((frontier.queues.sizes[found] > 0) & (opens <= until))
    end = start + (int(good[limit]) if len(good) > limit else len(found))
    return frontier.hosts.names[found[good[:limit]]].tolist(), end if end < last else None


def _largest(values: Any, most: int) -> I64:
    """The rows of the largest values above 0, the largest first."""
    rows: I64 = np.argpartition(values, -most)[-most:] if most < len(values) else np.arange(len(values))
    rows = rows[values[rows] > 0]
    return rows.take(np.argsort(-values[rows], kind="stable"))


def _host_facts(frontier: Frontier, rows: I64) -> Hosts:
    own, known = frontier.hosts.rows[rows], Hosts(frontier.hosts.names[rows], np.empty((HOST_FACTS, len(rows))))
    queue = frontier.pace.rows[own["pace"]]
    for name in ("pages", "failures", "errors", "judged", "relevance_sum", "domain"):
        getattr(known, name)[:] = own[name]
    for name in ("median_ms", "median_bytes", "leases", "limit"):
        getattr(known, name)[:] = queue[name]
    known.crawl_delay[:], known.last_fetch[:] = queue["delay"], queue["last"]
    known.domain_pages[:], known.next_fetch[:] = (
        frontier.hosts.domain_pages[own["domain"]],
        frontier.pace.opens[own["pace"]],
    )
    return known
