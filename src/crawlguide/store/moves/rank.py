"""Rank: in which order URLs wait, which do not wait at all, and which are evicted when there are too many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.store.crawls import Crawls
from crawlguide.store.tables.rows import DONE, DROPPED, LEASED, QUEUED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.config import StoreOptions
    from crawlguide.core.tables import F64, U64
    from crawlguide.core.types import Crawl
    from crawlguide.store.frontier import Frontier


@dataclass(frozen=True)
class Quota:
    """How many URLs and links one crawl may keep, and for how long."""

    urls: int  # waiting
    urls_per_host: int
    links: int
    done: int = 20_000_000  # fetched or dropped
    keep_done_s: float = float("inf")

    @classmethod
    def of(cls, options: StoreOptions) -> Quota:
        keep_s = options.keep_done_days * 86_400.0
        return cls(options.max_urls, options.max_urls_per_host, options.max_links, options.max_done, keep_s)


class Ranking(Crawls):
    async def rank(self, crawl: Crawl, ids: U64, priority: F64) -> None:
        """New priorities; then, over quota, the lowest-ranked are evicted."""
        frontier = self.frontier(crawl)
        rows = frontier.index.find(ids)
        rows, priority = rows[rows >= 0], priority[rows >= 0]
        frontier.queues.rank(rows.astype(np.int32), priority)
        frontier.dirty.rows(rows)
        _evict(frontier)
        if frontier.states[QUEUED] > frontier.quota.urls_per_host:  # else no host can be over its quota
            _evict_from(frontier, np.unique(frontier.table["host"][rows]).tolist())

    async def set_priority(self, crawl: Crawl, ids: U64, manual_priority: F64) -> None:
        frontier = self.frontier(crawl)
        rows = frontier.index.find(ids)
        frontier.table["given"][rows[rows >= 0]] = manual_priority[rows >= 0]
        frontier.dirty.rows(rows[rows >= 0])

    async def schedule(self, crawl: Crawl, ids: U64, due: F64) -> None:
        frontier = self.frontier(crawl)
        rows = frontier.index.find(ids)
        done = (rows >= 0) & (frontier.table["state"][rows] == DONE)
        frontier.postpone(rows[done], due[done])

    async def take_due(self, crawl: Crawl, at: float, most: int) -> U64:
        frontier = self.frontier(crawl)
        rows = frontier.queues.take_due(at, most).astype(np.int64)
        frontier.dirty.rows(rows)
        ids: U64 = frontier.index.ids[rows]
        return ids

    async def hold_due(self, crawl: Crawl, held: bool) -> None:
        self.frontier(crawl).hold_due(held)

    async def queue_again(self, crawl: Crawl, ids: U64) -> None:
        frontier = self.frontier(crawl)
        rows = np.unique(frontier.index.find(ids))
        rows = rows[rows >= 0]
        rows = rows[frontier.table["state"][rows] == DONE]
        frontier.queues.later.remove(rows.astype(np.int32))
        frontier.enqueue(rows)

    async def drop(self, crawl: Crawl, ids: U64, reason: str) -> None:
        frontier, rows = self.known_rows(crawl, ids)
        frontier.drop(rows[frontier.table["state"][rows] == QUEUED], reason)

    async def revive(self, crawl: Crawl, ids: U64, deepest: int = -1) -> None:
        frontier, rows = self.known_rows(crawl, ids)
        frontier.revive(rows[frontier.table["state"][rows] == DROPPED], deepest)


def _evict(frontier: Frontier) -> None:
    """Over quota the lowest-ranked waiting rows go, never a leased one."""
    while frontier.states[QUEUED] > frontier.quota.urls and (worst := frontier.queues.worst.first()) is not None:
        row = np.array([worst])
        if frontier.table["state"][worst] == LEASED:
            frontier.queues.worst.remove(row.astype(np.int32))  # it is pushed again when it waits again
        else:
            frontier.counts["evicted"] += 1
            frontier.forget(row)


def _evict_from(frontier: Frontier, hosts: Sequence[int]) -> None:
    """The same for hosts that are over their own quota."""
    waiting = frontier.queues.waiting
    for host in hosts:
        while waiting.inner.size(host) > frontier.quota.urls_per_host:
            frontier.counts["evicted"] += 1
            frontier.forget(np.array([waiting.worst(host)]))
