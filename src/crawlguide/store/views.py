"""Views: rows shown to others, as a batch for an ask, as records and numbers for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core import urls
from crawlguide.core.errors import MalformedRequest
from crawlguide.core.kernels import i32s, i64s, kernel, matrix, one_i64, part
from crawlguide.core.tables import Lookup
from crawlguide.core.types import BATCH_FACTS, HOST_FACTS, Batch, Hosts, UrlRecord
from crawlguide.store.crawls import Crawls
from crawlguide.store.tables.links import joined
from crawlguide.store.tables.rows import DROPPED, FREE, LEASED, QUEUED, STATES, TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.tables import F64, I64, U64, Mask
    from crawlguide.core.types import Crawl, Paths
    from crawlguide.store.frontier import Frontier

SCANNED_AT_ONCE = 100_000
HOSTS_AT_ONCE = 10_000
COUNTED = ("asks", "assigned", "fetches", "failed", "relevant", "discovered", "evicted", "forgotten")


class Views(Crawls):
    # URLs and links

    async def look(self, crawl: Crawl, ids: U64) -> Batch:
        return batch(*self.known_rows(crawl, ids))

    async def find(self, crawl: Crawl, ids: U64) -> list[UrlRecord | None]:
        frontier = self.frontier(crawl)
        return [_record(frontier, row) if row >= 0 else None for row in frontier.index.find(ids).tolist()]

    async def scan(
        self, crawl: Crawl, state: str | None, host: str | None, limit: int, cursor: str | None
    ) -> tuple[list[UrlRecord], str | None]:
        frontier, start = self.frontier(crawl), _start(cursor)
        end = min(start + SCANNED_AT_ONCE, frontier.index.rows)
        rows = matching(frontier, state, host, start, end)
        if len(rows) > limit:
            rows, end = rows[:limit], int(rows[limit])
        records = [_record(frontier, row) for row in rows.tolist()]
        return records, str(end) if end < frontier.index.rows else None

    async def parents(self, crawl: Crawl, ids: U64) -> Paths:
        frontier, rows = self.known_rows(crawl, ids)
        return joined([frontier.parents(row) for row in rows.tolist()])

    async def children(self, crawl: Crawl, ids: U64) -> Paths:
        frontier, rows = self.known_rows(crawl, ids)
        return joined([frontier.links.children(frontier.id_of(row)) for row in rows.tolist()])

    # the queues

    async def count_above(self, crawl: Crawl, priority: float, cursor: int) -> tuple[int, int | None]:
        frontier = self.frontier(crawl)
        end = min(cursor + SCANNED_AT_ONCE, frontier.index.rows)
        table = frontier.table[cursor:end]
        above = int(np.count_nonzero((table["state"] == QUEUED) & (table["priority"] > priority)))
        return above, end if end < frontier.index.rows else None

    async def wait(self, crawl: Crawl, at: float, *, changes: bool = False) -> float | None:
        """Until the first of: a host opens, a row is due, a lease ends."""
        frontier = self.frontier(crawl)
        waiting = frontier.queues.waiting
        if waiting.any_open() and not changes:
            return 0.0
        ends = (waiting.next_opening(), frontier.queues.next_due(), frontier.leases.next_end())
        instants = [end for end in ends if end is not None and end < np.inf]
        return max(min(instants) - at, 0.0) if instants else None

    async def stats(self, crawl: Crawl) -> Mapping[str, Any]:
        """How many rows are in each state, and what was counted."""
        frontier = self.frontier(crawl)
        states = dict(zip(STATES[:3], frontier.states.tolist(), strict=False))
        dropped = {reason: count for reason, count in frontier.dropped.items() if count}
        return {
            **states,
            "dropped": dropped,
            "hosts": len(frontier.hosts),
            **{name: frontier.counts[name] for name in COUNTED},
        }

    # hosts

    async def hosts(self, crawl: Crawl, limit: int) -> tuple[Hosts, I64, F64]:
        """Looks at the hosts that became known first, up to SCANNED_AT_ONCE of them."""
        frontier = self.frontier(crawl)
        frontier.queues.fit(0, len(frontier.hosts.rows))
        own = frontier.hosts.rows[: min(frontier.hosts.end, SCANNED_AT_ONCE)]
        waiting = _waiting(frontier)[: len(own)].astype(np.int64)
        failing = _largest(own["failures"], max(1, limit // 2))
        busy = _largest(waiting + own["pages"] / (own["pages"] + 1.0), limit)  # of equals the one with more pages
        chosen = np.concatenate([failing, busy[~np.isin(busy, failing)]])[:limit]
        return _host_facts(frontier, chosen), waiting[chosen], own["withheld"][chosen]

    async def open_hosts(
        self, crawl: Crawl, domain: str | None, until: float, limit: int, cursor: int
    ) -> tuple[list[str], int | None]:
        """Looks at HOSTS_AT_ONCE of them at most."""
        frontier = self.frontier(crawl)
        frontier.queues.fit(0, len(frontier.hosts.rows))
        if domain is None:
            hosts = np.arange(cursor, min(cursor + HOSTS_AT_ONCE, frontier.hosts.end))
            last = frontier.hosts.end
        else:
            mine = frontier.hosts.of_domain(urls.domain_hash(domain))
            hosts, last = np.array(mine[cursor : cursor + HOSTS_AT_ONCE], np.int64), len(mine)
        good = np.flatnonzero((_waiting(frontier)[hosts] > 0) & (frontier.opens(hosts) <= until))
        end = cursor + (int(good[limit]) if len(good) > limit else len(hosts))
        return frontier.hosts.names[hosts[good[:limit]]].tolist(), end if end < last else None


def batch(frontier: Frontier, rows: I64) -> Batch:
    """The given rows as columns, joined with the rows of their hosts."""
    count = len(rows)
    host, numbers = np.empty(count, np.int64), np.empty(count, np.int64)
    facts, host_facts = np.empty((BATCH_FACTS, count)), np.empty((HOST_FACTS, count))
    distinct = join(rows, frontier.tables, frontier.hosts.scratch, host, numbers, facts, host_facts)
    hosts = Hosts(Lookup(frontier.hosts.names, numbers[:distinct]), host_facts[:, :distinct])
    ids = frontier.index.ids.take(rows)
    return Batch(Lookup(frontier, ids), ids, host, facts, hosts)


def matching(frontier: Frontier, state: str | None, host: str | None, start: int, end: int) -> I64:
    """Rows from `start` up to `end` in that state and of that host (None: any)."""
    table = frontier.table[start : min(end, frontier.index.rows)]
    wanted: Mask = table["state"] < FREE if state is None else table["state"] == STATES.index(state)
    if host is not None:
        number = frontier.hosts.find(host)
        wanted = wanted & (table["host"] == (-1 if number is None else number))
    return start + np.flatnonzero(wanted)


def _start(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isdecimal() or len(cursor) > 18:
        raise MalformedRequest(f"cursor: expected one that an earlier page gave, got {cursor[:40]!r}", field="cursor")
    return int(cursor)


def _record(frontier: Frontier, row: int) -> UrlRecord:
    facts = frontier.table[row]
    state = int(facts["state"])
    lease = frontier.leases.by_row.get(row) if state == LEASED else None
    return UrlRecord(
        url=frontier.urls.of(row),
        state=STATES[state],
        reason=frontier.reasons[int(facts["reason"])] if state == DROPPED else None,
        priority=float(facts["priority"]),
        crawler_id=lease.crawler_id if lease else None,
        lease_expires=lease.expires if lease else None,
        status=int(facts["status"]) or None,
        fetched=None if np.isnan(facts["fetched"]) else float(facts["fetched"]),
    )


def _waiting(frontier: Frontier) -> Any:
    """How many rows of each host wait for their turn."""
    return frontier.queues.waiting.inner.groups["size"]


def _largest(values: Any, most: int) -> I64:
    """The rows of the largest values above 0, the largest first."""
    rows: I64 = np.argpartition(values, -most)[-most:] if most < len(values) else np.arange(len(values))
    rows = rows[values[rows] > 0]
    return rows.take(np.argsort(-values[rows], kind="stable"))


def _host_facts(frontier: Frontier, rows: I64) -> Hosts:
    own, hosts = frontier.hosts.rows[rows], Hosts(frontier.hosts.names[rows], np.empty((HOST_FACTS, len(rows))))
    queue = frontier.politeness.rows[own["pace"]]
    for name in ("pages", "failures", "errors", "judged", "relevance_sum", "domain", "median_bytes"):
        getattr(hosts, name)[:] = own[name]
    for name in ("median_ms", "leases", "limit"):
        getattr(hosts, name)[:] = queue[name]
    hosts.crawl_delay[:], hosts.last_fetch[:] = queue["delay"], queue["last"]
    hosts.domain_pages[:] = frontier.hosts.domain_pages[own["domain"]]
    hosts.next_fetch[:] = frontier.politeness.opens[own["pace"]]
    return hosts


# The numbers below are the places of the facts in core.types.Batch and core.types.Hosts; a test compares them by name.


@part
def note_url(facts, number, row, host, queue):  # type: ignore[no-untyped-def]
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
    facts[11, number] = host.median_bytes
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
    facts[8, number] = host.median_bytes
    facts[9, number] = queue.delay
    facts[10, number] = queue.last
    facts[11, number] = opens
    facts[12, number] = queue.leases
    facts[13, number] = queue.limit


@part
def fetch_ahead(rows, tables, host, queue):  # type: ignore[no-untyped-def]
    """Touch what is needed soon, each kind in a loop of its own: so the waits for memory overlap."""
    for number in range(len(rows)):
        host[number] = tables.rows[rows[number]].host
    for number in range(len(rows)):
        queue[number] = tables.hosts[host[number]].pace
    touched = 0
    for number in range(len(rows)):
        touched += tables.politeness[queue[number]].fetches
    return touched


@kernel(one_i64(i64s, TABLES, i32s, i64s, i64s, matrix, matrix))
def join(rows, tables, place, host, numbers, facts, host_facts):  # type: ignore[no-untyped-def]
    """Fill in the facts of rows and of their hosts, which are numbered in the order of their first row.

    `place` is a column of zeros over all hosts, and is left so. Returns how many distinct hosts there are.
    """
    count = 0 * fetch_ahead(rows, tables, host, numbers)
    for number in range(len(rows)):
        row = tables.rows[rows[number]]
        if place[row.host] == 0:
            numbers[count] = row.host
            count += 1
            place[row.host] = count
        host[number] = place[row.host] - 1
        mine = tables.hosts[row.host]
        note_url(facts, number, row, mine, tables.politeness[mine.pace])
    for number in range(count):
        mine = tables.hosts[numbers[number]]
        place[numbers[number]] = 0
        queue, pages, opens = tables.politeness[mine.pace], tables.domain_pages[mine.domain], tables.opens[mine.pace]
        note_host(host_facts, number, mine, queue, pages, opens)
    return count
