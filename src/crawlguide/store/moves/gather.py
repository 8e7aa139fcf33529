"""Gather: the rows an ask looks at. The hosts of the crawler's focus, the best of all, and those named besides."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.columns import among
from crawlguide.store import views
from crawlguide.store.crawls import Crawls
from crawlguide.store.tables.rows import QUEUED

if TYPE_CHECKING:
    from crawlguide.core.tables import I32, I64, U64, Mask
    from crawlguide.core.types import Ask, Batch, Crawl
    from crawlguide.store.frontier import Frontier

FOCUS_HOSTS = 20
FOCUS_PER_HOST = 10


class Gathering(Crawls):
    async def gather(
        self, crawl: Crawl, ask: Ask, limit: int, horizon_s: float, per_host: int, also: U64 | None = None
    ) -> Batch:
        """The focus first, then the best, then those named in `also`; each once."""
        frontier, until = self.frontier(crawl), ask.at + horizon_s
        if not ask.looking:  # a look moves nothing, not even what is due
            frontier.wake(ask.at)
        rows = _best(frontier, limit, per_host, until)
        focus = _focus(frontier, ask, until)
        if len(focus):
            rows = np.concatenate([focus, rows[~_among(rows, focus)]])
        if also is not None and len(also):
            more = _waiting(frontier, also, until)
            rows = np.concatenate([rows, more[~_among(more, rows)]])
        return views.batch(frontier, rows)


def _best(frontier: Frontier, limit: int, per_host: int, until: float) -> I64:
    """The best waiting rows of hosts that open by `until` and are not withheld longer, best first."""
    waiting, opens, queue_row = frontier.queues.waiting, frontier.politeness.opens, frontier.hosts.queue_row
    while True:
        rows = waiting.best(limit, per_host, until, opens, queue_row).astype(np.int64)
        withheld = _withheld(frontier, rows, until) if frontier.any_withheld else np.zeros(0, np.int32)
        if not len(withheld):
            return rows
        waiting.shut(withheld, frontier.hosts.rows["withheld"][withheld])


def _withheld(frontier: Frontier, rows: I64, until: float) -> I32:
    """Which hosts of these rows are withheld longer than `until`."""
    hosts = frontier.table["host"][rows]
    withheld: I32 = hosts[frontier.hosts.rows["withheld"][hosts] > until]
    return np.unique(withheld) if len(withheld) else withheld


def _focus(frontier: Frontier, ask: Ask, until: float) -> I64:
    """Some rows of the hosts the crawler works on, so that they are considered whatever their rank."""
    known = (host for name in sorted(ask.focus) if (host := frontier.hosts.find(name)) is not None)
    hosts = list(islice(known, FOCUS_HOSTS))
    hosts += frontier.hosts.of_domain(ask.domain_hash) if ask.domain_hash else []
    if not hosts:
        return np.zeros(0, np.int64)
    numbers = np.array(hosts[:FOCUS_HOSTS])
    open_now = numbers[frontier.opens(numbers) <= until].tolist()
    tops = [frontier.queues.waiting.inner.top(host, FOCUS_PER_HOST) for host in open_now]
    return np.concatenate(tops).astype(np.int64) if tops else np.zeros(0, np.int64)


def _waiting(frontier: Frontier, ids: U64, until: float) -> I64:
    """The rows of those that wait for their turn on hosts that open by then."""
    rows = np.unique(frontier.index.find(ids))
    rows = rows[rows >= 0]
    rows = rows[(frontier.table["state"][rows] == QUEUED) & np.isnan(frontier.table["due"][rows])]
    waiting: I64 = rows[frontier.opens(frontier.table["host"][rows]) <= until]
    return waiting


def _among(rows: I64, others: I64) -> Mask:
    return among(rows.astype(np.uint64), others.astype(np.uint64))
