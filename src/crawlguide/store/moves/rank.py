"""How much one crawl may remember."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.store.tables.rows import LEASED, QUEUED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.config import StoreOptions
    from crawlguide.core.tables import F64, I64
    from crawlguide.store.frontier import Frontier


@dataclass(frozen=True)
class Quota:
    """How many URLs and links, and for how long."""

    urls: int  # waiting
    urls_per_host: int
    links: int
    done: int = 20_000_000  # fetched or dropped
    keep_done_s: float = float("inf")

    @classmethod
    def of(cls, options: StoreOptions) -> Quota:
        keep_s = options.keep_done_days * 86_400.0
        return cls(options.max_urls, options.max_urls_per_host, options.max_links, options.max_done, keep_s)


# Where waiting rows stand: a new priority moves a row, and over quota the last ones go.


def rank(frontier: Frontier, rows: I64, priority: F64) -> None:
    """New priorities; then, over quota, the lowest-ranked go."""
    known = rows >= 0
    rows, priority = rows[known], priority[known]
    frontier.queues.rank(rows.astype(np.int32), priority)
    frontier.changes.rows(rows)
    _evict(frontier)
    if frontier.states[QUEUED] > frontier.quota.urls_per_host:  # else no host can be over its quota
        _evict_from(frontier, np.unique(frontier.table["host"][rows]).tolist())


def _evict(frontier: Frontier) -> None:
    """Over quota the lowest-ranked waiting rows go, never one in flight."""
    while frontier.states[QUEUED] > frontier.quota.urls and (worst := frontier.queues.worst()) is not None:
        row = np.array([worst])
        if frontier.table["state"][worst] == LEASED:
            frontier.queues.pass_over(row.astype(np.int32))
        else:
            frontier.counts["evicted"] += 1
            frontier.forget(row)


def _evict_from(frontier: Frontier, hosts: Sequence[int]) -> None:
    """The same for hosts that are over their own quota."""
    for host in hosts:
        while frontier.queues.waiting(host) > frontier.quota.urls_per_host:
            frontier.counts["evicted"] += 1
            frontier.forget(np.array([frontier.queues.worst_of_host(host)]))
