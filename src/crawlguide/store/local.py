"""The store of one process: columns in memory, the rest on shelves. Which shelves, and whether anything lasts, is said
by the kinds that build on it: `memory` and `embedded`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from crawlguide.core.errors import NotFound
from crawlguide.core.telemetry import SILENT
from crawlguide.store import views
from crawlguide.store.moves import discover, forget, gather, lease, rank, transfer, withhold
from crawlguide.store.moves.record import Outcomes
from crawlguide.store.tables.links import joined
from crawlguide.store.tables.rows import DONE, DROPPED, QUEUED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from crawlguide.core.notebook import Notebook
    from crawlguide.core.tables import F64, I64, U64
    from crawlguide.core.telemetry import Telemetry
    from crawlguide.core.types import (
        Ask,
        Batch,
        Crawl,
        Discovery,
        Fetches,
        Grants,
        Hosts,
        KnownLink,
        KnownPage,
        KnownUrl,
        LeaseTerms,
        Links,
        Paths,
        Recorded,
        UrlRecord,
    )
    from crawlguide.store.crawl_data import CrawlData
    from crawlguide.store.frontier import Frontier
    from crawlguide.store.moves.rank import Quota
    from crawlguide.store.tables.pace import Pace

CLEARED_AT_ONCE = 4  # ended answers, for each that is looked up: so they never pile up


class LocalStore:
    """All crawls in this process. Only `commit` and long purges suspend, so every other call is atomic."""

    def __init__(self, quota: Quota, pace: Pace) -> None:
        self._quota = quota
        self._pace = pace
        self._books: dict[Crawl, CrawlData] = {}

    opened_s = 0.0  # what opening took
    telemetry: Telemetry = SILENT

    def listen(self, telemetry: Telemetry) -> None:
        self.telemetry = telemetry

    async def figures(self) -> Mapping[str, float]:
        tables = [table for one in self._frontiers() for table in (one.table, one.index.ids, one.hosts.rows)]
        learned = sum(book.notebook.nbytes for book in self._books.values())
        return {"columns_bytes": float(sum(table.nbytes for table in tables) + learned)}

    @property
    def folder(self) -> Path | None:
        """Where it is kept; None: nowhere."""
        return None

    def _new_book(self, crawl: Crawl, definition: bytes) -> CrawlData:
        raise NotImplementedError

    def _changing(self, at: float) -> None:
        """Called before anything changes; raises where no change can be kept."""

    def _book(self, crawl: Crawl) -> CrawlData:
        try:
            return self._books[crawl]
        except KeyError:
            raise NotFound(f"crawl_id: no crawl named {crawl.name!r}", field="crawl_id") from None

    def _frontier(self, crawl: Crawl) -> Frontier:
        return self._book(crawl).frontier

    def _known(self, crawl: Crawl, ids: U64) -> tuple[Frontier, I64]:
        """The crawl's frontier, and the rows of those ids that it knows."""
        frontier = self._frontier(crawl)
        rows = frontier.index.find(ids)
        return frontier, rows[rows >= 0]

    def _frontiers(self) -> list[Frontier]:
        return [book.frontier for book in self._books.values()]

    # crawls

    async def crawl_put(self, crawl: Crawl, definition: bytes, at: float) -> bool:  # noqa: ARG002 - nothing ages here
        if crawl in self._books:
            self._books[crawl].definition = definition
            return False
        self._books[crawl] = self._new_book(crawl, definition)
        return True

    async def crawl_get(self, crawl: Crawl) -> bytes | None:
        return self._books[crawl].definition if crawl in self._books else None

    async def crawl_list(self, tenant: str) -> list[Crawl]:
        return sorted(crawl for crawl in self._books if crawl.tenant == tenant)

    async def crawl_delete(self, crawl: Crawl) -> bool:
        book = self._books.pop(crawl, None)
        if book is None:
            return False
        lease.end(book.frontier, list(book.frontier.leases.by_row))
        book.frontier.hosts.leave()
        return True

    # the frontier

    async def discover(self, crawl: Crawl, links: Links, parents: Fetches | None, at: float) -> Discovery:
        self._changing(at)
        return discover.discover(self._frontier(crawl), links, parents, at)

    async def gather(
        self, crawl: Crawl, ask: Ask, limit: int, horizon_s: float, per_host: int, also: U64 | None = None
    ) -> Batch:
        frontier = self._frontier(crawl)
        lease.wake(frontier, ask.at)
        return views.batch(frontier, gather.gathered(frontier, ask, limit, ask.at + horizon_s, per_host, also))

    async def open_hosts(
        self, crawl: Crawl, domain: str | None, until: float, limit: int, cursor: int
    ) -> tuple[list[str], int | None]:
        return views.open_hosts(self._frontier(crawl), domain, until, limit, cursor)

    async def reserve(self, crawl: Crawl, batch: Batch, terms: LeaseTerms) -> Grants:
        self._changing(terms.at)
        return lease.reserve(self._frontier(crawl), batch.id, terms)

    async def record(self, crawl: Crawl, fetches: Fetches, at: float, max_retries: int) -> Recorded:
        self._changing(at)
        book = self._book(crawl)
        book.told.expire(at, 2 * len(fetches))
        return Outcomes(book.frontier, book.told, fetches.crawler_id, at, max_retries).record(fetches)

    async def rank(self, crawl: Crawl, ids: U64, priority: F64) -> None:
        frontier = self._frontier(crawl)
        rank.rank(frontier, frontier.index.find(ids), priority)

    async def set_priority(self, crawl: Crawl, ids: U64, given: F64) -> None:
        frontier = self._frontier(crawl)
        rows = frontier.index.find(ids)
        frontier.give(rows[rows >= 0], given[rows >= 0])

    async def look(self, crawl: Crawl, ids: U64) -> Batch:
        return views.batch(*self._known(crawl, ids))

    async def parents(self, crawl: Crawl, ids: U64) -> Paths:
        frontier, rows = self._known(crawl, ids)
        return joined([frontier.parents(row) for row in rows.tolist()])

    async def children(self, crawl: Crawl, ids: U64) -> Paths:
        frontier, rows = self._known(crawl, ids)
        return joined([frontier.links.children(frontier.id_of(row)) for row in rows.tolist()])

    async def withhold(self, crawl: Crawl, hosts: Sequence[str], until: F64) -> None:
        withhold.withhold(self._frontier(crawl), hosts, until)

    async def admit(self, crawl: Crawl) -> None:
        withhold.admit(self._frontier(crawl))

    async def schedule(self, crawl: Crawl, ids: U64, due: F64) -> None:
        frontier = self._frontier(crawl)
        rows = frontier.index.find(ids)
        done = (rows >= 0) & (frontier.table["state"][rows] == DONE)
        frontier.postpone(rows[done], due[done])

    async def drop(self, crawl: Crawl, ids: U64, reason: str) -> None:
        frontier, rows = self._known(crawl, ids)
        frontier.drop(rows[frontier.table["state"][rows] == QUEUED], reason)

    async def revive(self, crawl: Crawl, ids: U64, deepest: int = -1) -> None:
        frontier, rows = self._known(crawl, ids)
        frontier.revive(rows[frontier.table["state"][rows] == DROPPED], deepest)

    async def release(self, crawl: Crawl, crawler_id: str) -> int:
        return lease.release(self._frontier(crawl), crawler_id)

    async def held(self, crawl: Crawl, crawler_id: str, at: float) -> int:
        frontier = self._frontier(crawl)
        lease.wake(frontier, at)
        return frontier.leases.count(crawler_id)

    async def expire(self, crawl: Crawl, at: float) -> int:
        book = self._book(crawl)
        before = len(book.frontier.leases)
        lease.wake(book.frontier, at)
        book.answers.expire(at)
        book.told.expire(at)
        return before - len(book.frontier.leases)

    # answers and learned state

    async def answer_get(self, crawl: Crawl, key: str, at: float) -> bytes | None:
        answers = self._book(crawl).answers
        answers.expire(at, CLEARED_AT_ONCE)
        return answers.get(key, at)

    async def answer_put(self, crawl: Crawl, key: str, answer: bytes, expires: float) -> None:
        self._book(crawl).answers.put(key, answer, expires)

    async def state_get(self, crawl: Crawl, name: str) -> tuple[bytes, int] | None:
        return self._book(crawl).state(name)

    async def state_put(self, crawl: Crawl, name: str, state: bytes, version: int) -> bool:
        return self._book(crawl).keep_state(name, state, version)

    async def count(self, crawl: Crawl, numbers: Mapping[str, int]) -> None:
        counts = self._frontier(crawl).counts
        for name, number in numbers.items():
            counts[name] += number

    # what lasts, and what is forgotten

    async def commit(self, durable: bool = True) -> None:
        """Nothing lasts here."""

    async def forget_old(self, crawl: Crawl, at: float) -> int:
        frontier = self._frontier(crawl)
        self._pace.forget_idle(at)
        return forget.sweep(frontier, at)

    # looking in

    async def notebook(self, crawl: Crawl) -> Notebook:
        return self._book(crawl).notebook

    async def generation(self) -> int:
        return 0  # what is in memory is never read anew

    async def find(self, crawl: Crawl, ids: U64) -> list[UrlRecord | None]:
        frontier = self._frontier(crawl)
        return [views.record(frontier, row) if row >= 0 else None for row in frontier.index.find(ids).tolist()]

    async def scan(
        self, crawl: Crawl, state: str | None, host: str | None, limit: int, cursor: str | None
    ) -> tuple[list[UrlRecord], str | None]:
        return views.scan(self._frontier(crawl), state, host, limit, cursor)

    async def count_above(self, crawl: Crawl, priority: float, cursor: int) -> tuple[int, int | None]:
        return views.count_above(self._frontier(crawl), priority, cursor)

    async def hosts(self, crawl: Crawl, limit: int) -> tuple[Hosts, I64, F64]:
        return views.hosts(self._frontier(crawl), limit)

    async def dump(self, crawl: Crawl, cursor: int, limit: int) -> tuple[list[KnownUrl], int | None]:
        return transfer.known_urls(self._frontier(crawl), cursor, limit)

    async def dump_links(self, crawl: Crawl, cursor: int, limit: int) -> tuple[list[KnownPage], int | None]:
        return transfer.known_pages(self._frontier(crawl), cursor, limit)

    async def adopt(self, crawl: Crawl, ids: U64, hosts: Sequence[str], urls: Sequence[KnownUrl], at: float) -> int:
        self._changing(at)
        return transfer.adopt(self._frontier(crawl), ids, hosts, urls, at)

    async def adopt_links(self, crawl: Crawl, page: int, children: U64, links: Sequence[KnownLink], at: float) -> None:
        self._changing(at)
        transfer.adopt_links(self._frontier(crawl), page, children, links)

    async def purge(self, crawl: Crawl, state: str | None, host: str | None) -> int:
        gone = 0
        for start in range(0, self._frontier(crawl).index.rows, views.SCANNED_AT_ONCE):
            gone += forget.purge(self._frontier(crawl), state, host, start)
            await asyncio.sleep(0)  # others are served between the pieces of a long purge, and the crawl may be deleted
        return gone

    async def control(
        self,
        queue: str,
        *,
        delay_s: float | None = None,
        block_until: float | None = None,
        limit: int | None = None,
    ) -> None:
        withhold.control(self._pace, self._frontiers(), queue, delay_s, block_until, limit)

    async def located(self, host: str, address: str) -> None:
        withhold.located(self._pace, self._frontiers(), host, address)

    async def wait(self, crawl: Crawl, at: float) -> float | None:
        return views.wait(self._frontier(crawl), at)

    async def stats(self, crawl: Crawl) -> Mapping[str, Any]:
        return views.stats(self._frontier(crawl))

    async def close(self) -> None:
        self._books.clear()
