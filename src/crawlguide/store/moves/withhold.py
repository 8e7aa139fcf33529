"""Withhold: hosts that a crawl leaves alone for a while, and what is set for politeness queues from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.store.crawls import Crawls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64, I32
    from crawlguide.core.types import Crawl
    from crawlguide.store.frontier import Frontier


class Withholding(Crawls):
    async def withhold(self, crawl: Crawl, hosts: Sequence[str], until: F64) -> None:
        frontier = self.frontier(crawl)
        rows = frontier.hosts.rows_of(hosts)
        frontier.queues.fit(0, len(frontier.hosts.rows))
        frontier.any_withheld = True
        _set_withheld(frontier, rows, until)

    async def admit(self, crawl: Crawl) -> None:
        frontier = self.frontier(crawl)
        withheld = frontier.hosts.rows["withheld"][: frontier.hosts.end] > -np.inf
        frontier.any_withheld = False
        _set_withheld(frontier, np.flatnonzero(withheld).astype(np.int32), -np.inf)

    async def control(
        self,
        queue: str,
        *,
        delay_s: float | None = None,
        block_until: float | None = None,
        limit: int | None = None,
    ) -> None:
        """Its host's queue is looked at anew in every crawl."""
        politeness = self.politeness
        row = politeness.row(queue)
        politeness.touched.add(row)
        if delay_s is not None:
            politeness.set_delay(row, delay_s)
        if block_until is not None:
            politeness.block(row, block_until)
        if limit is not None:
            politeness.rows["limit"][row] = limit
        self._look_anew(queue)

    async def hold(self, queue: str, *, until: float = -np.inf, delay_s: float = 0.0) -> None:
        row = self.politeness.row(queue)
        self.politeness.touched.add(row)
        self.politeness.hold(row, until, delay_s)
        self._look_anew(queue)

    def _look_anew(self, queue: str) -> None:
        for frontier in self.frontiers():
            host = frontier.hosts.find(queue)
            if host is not None:
                frontier.queues.waiting.open(np.array([host], np.int32))

    async def located(self, host: str, address: str) -> None:
        """In every crawl the host moves to the queue of that address, with its leases."""
        old = self.politeness.locate(host, address)
        if old is None:
            return
        new, leases, crawls = self.politeness.row(host), 0, 0
        for frontier in self.frontiers():
            row = frontier.hosts.find(host)
            if row is not None:
                leases += int(np.count_nonzero(frontier.table["host"][list(frontier.leases.by_row)] == row))
                crawls += 1
                frontier.hosts.move(row, new)
                frontier.dirty.hosts(np.array([row], np.int32))
                frontier.queues.waiting.open(np.array([row], np.int32))
        self.politeness.merge(old, new, leases, crawls)


def _set_withheld(frontier: Frontier, hosts: I32, until: F64 | float) -> None:
    """The hosts are let in; those that must wait are shut when `gather` meets them."""
    frontier.hosts.rows["withheld"][hosts] = until
    frontier.queues.waiting.open(hosts)
    frontier.dirty.hosts(hosts)
