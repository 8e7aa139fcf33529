"""Rows shown to others: as a batch for the corridor, as records for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.columns import texts
from crawlguide.core.types import Batch, Hosts, UrlRecord
from crawlguide.store.rows import DROPPED, FREE, LEASED, STATES

if TYPE_CHECKING:
    from crawlguide.core.types import I64, Mask
    from crawlguide.store.frontier import Frontier

SCANNED_AT_ONCE = 100_000


def batch(frontier: Frontier, rows: I64) -> Batch:
    """The given rows as columns, joined with the rows of their hosts."""
    taken = frontier.table[rows]
    numbers, host = np.unique(taken["host"], return_inverse=True)
    hosts, urls = host_rows(frontier, numbers), frontier.urls
    return Batch(
        url=texts([urls[row] for row in rows.tolist()]),
        id=frontier.index.ids[rows],
        host=host,
        arm=taken["arm"],
        depth=taken["depth"],
        sequence=taken["sequence"],
        discovered=taken["discovered"],
        fetched=taken["fetched"],
        parents=taken["parents"],
        parent_sum=taken["parent_sum"],
        parent_best=taken["parent_best"].astype(np.float64),
        given=taken["given"].astype(np.float64),
        priority=taken["priority"],
        estimated_ms=hosts.median_ms[host],
        estimated_bytes=hosts.median_bytes[host],
        value=taken["priority"],
        score=taken["priority"],
        hosts=hosts,
    )


def host_rows(frontier: Frontier, hosts: I64) -> Hosts:
    mine = frontier.hosts.rows[hosts]
    pace = frontier.pace.rows[mine["pace"]]
    names = frontier.hosts.names
    return Hosts(
        name=texts([names[host] for host in hosts.tolist()]),
        pages=mine["pages"],
        failures=mine["failures"],
        domain_pages=frontier.hosts.domain_pages[mine["domain"]],
        relevance=mine["relevance_sum"] / np.maximum(mine["judged"], 1),
        judged=mine["judged"],
        median_ms=pace["median_ms"],
        median_bytes=pace["median_bytes"],
        crawl_delay=pace["delay"],
        last_fetch=pace["last"],
        next_fetch=frontier.pace.opens[mine["pace"]],
        leases=pace["leases"].astype(np.int64),
        limit=pace["limit"].astype(np.int64),
    )


def record(frontier: Frontier, row: int) -> UrlRecord:
    taken = frontier.table[row]
    state = int(taken["state"])
    lease = frontier.leases.by_row.get(row) if state == LEASED else None
    return UrlRecord(
        url=frontier.urls[row],
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
    table = frontier.table[start:end]
    wanted: Mask = table["state"] < FREE if state is None else table["state"] == STATES.index(state)
    if host is not None:
        number = frontier.hosts.find(host)
        wanted = wanted & (table["host"] == (-1 if number is None else number))
    return start + np.flatnonzero(wanted)


def scan(
    frontier: Frontier, state: str | None, host: str | None, limit: int, start: int
) -> tuple[list[UrlRecord], int | None]:
    """Up to `limit` matching rows from `start` on, looking at a bounded number; where to go on, None at the end."""
    end = min(start + SCANNED_AT_ONCE, frontier.index.rows)
    rows = matching(frontier, state, host, start, end)
    if len(rows) > limit:
        rows, end = rows[:limit], int(rows[limit])
    records = [record(frontier, row) for row in rows.tolist()]
    return records, end if end < frontier.index.rows else None
