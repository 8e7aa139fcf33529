"""What is said of politeness queues from outside: delays, blocks, bounds, and which hosts share one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection

    from crawlguide.store.frontier import Frontier
    from crawlguide.store.pace import Pace


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
