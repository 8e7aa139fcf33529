"""Hosts that a crawl leaves alone for a while, because they are full or fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from crawlguide.core.tables import F64, I32, I64
    from crawlguide.store.frontier import Frontier
    from crawlguide.store.tables.pace import Pace


def withhold(frontier: Frontier, hosts: Sequence[str], until: F64) -> None:
    """Keep hosts out, each until its instant."""
    rows = frontier.hosts.rows_of(hosts)
    frontier.queues.fit(0, len(frontier.hosts.rows))
    frontier.any_withheld = True
    _set(frontier, rows, until)


def admit(frontier: Frontier) -> None:
    """Let all in again."""
    held = np.flatnonzero(frontier.hosts.rows["withheld"][: frontier.hosts.end] > -np.inf).astype(np.int32)
    frontier.any_withheld = False
    _set(frontier, held, -np.inf)


def _set(frontier: Frontier, hosts: I32, until: F64 | float) -> None:
    """Their queues are looked at anew, which shuts those that must wait."""
    frontier.hosts.rows["withheld"][hosts] = until
    frontier.queues.open(hosts)
    frontier.changes.hosts(hosts)


def withheld(frontier: Frontier, rows: I64, until: float) -> I32:
    """Which hosts of these rows are kept out longer than `until`."""
    hosts = np.unique(frontier.table["host"][rows])
    held: I32 = hosts[frontier.hosts.rows["withheld"][hosts] > until]
    return held


# What is said of politeness queues from outside: delays, blocks, bounds, and which hosts share one.


def control(
    pace: Pace,
    known: Collection[Frontier],
    queue: str,
    delay_s: float | None,
    block_until: float | None,
    limit: int | None,
) -> None:
    """Set a queue's own delay, block it, or cap its leases; its host is looked at anew in every crawl."""
    row = pace.row(queue)
    pace.touched.add(row)
    if delay_s is not None:
        pace.set_delay(row, delay_s)
    if block_until is not None:
        pace.block(row, block_until)
    if limit is not None:
        pace.set_limit(row, limit)
    for frontier in known:
        host = frontier.hosts.find(queue)
        if host is not None:
            frontier.queues.open(np.array([host], np.int32))


def located(pace: Pace, known: Collection[Frontier], host: str, address: str) -> None:
    """A host is at an address: in every crawl it moves to the queue of that address, with what it is owed."""
    old = pace.found(host, address)
    if old is None:
        return
    new, leases, crawls = pace.row(host), 0, 0
    for frontier in known:
        row = frontier.hosts.find(host)
        if row is not None:
            leases += int(np.count_nonzero(frontier.table["host"][list(frontier.leases.by_row)] == row))
            crawls += 1
            frontier.hosts.move(row, new)
            frontier.changes.hosts(np.array([row], np.int32))
            frontier.queues.open(np.array([row], np.int32))
    pace.merge(old, new, leases, crawls)
