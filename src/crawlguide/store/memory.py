"""Everything in this process: the store for tests, the lab and crawls that may be forgotten."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core.errors import MalformedRequest, NotFound
from crawlguide.core.types import Paths
from crawlguide.store import discovery, views
from crawlguide.store.expiring import Expiring
from crawlguide.store.frontier import Frontier, Quota
from crawlguide.store.outcomes import Outcomes
from crawlguide.store.pace import Pace
from crawlguide.store.rows import DONE, DROPPED, LEASED, QUEUED, STATES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.config import StoreOptions
    from crawlguide.core.tables import F64, U64
    from crawlguide.core.types import (
        Ask,
        Batch,
        Crawl,
        Discovery,
        Fetches,
        Grants,
        LeaseTerms,
        Links,
        Recorded,
        UrlRecord,
    )

FOCUS_HOSTS = 20
FOCUS_PER_HOST = 10
CLEARED_AT_ONCE = 4  # ended answers, for each that is looked up: so they never pile up


def build(options: StoreOptions) -> MemoryStore:
    return MemoryStore(Quota(options.max_urls, options.max_urls_per_host, options.max_links))


@dataclass
class Book:
    """One crawl: its definition, frontier, answers and learned state."""

    definition: bytes
    frontier: Frontier
    answers: Expiring[str, bytes] = field(default_factory=Expiring)
    told: Expiring[str, bool] = field(default_factory=Expiring)
    states: dict[str, tuple[bytes, int]] = field(default_factory=dict)


class MemoryStore:
    """Never suspends (but in a long purge), so each call is atomic; forgets everything when the process ends."""

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self._pace = Pace()
        self._books: dict[Crawl, Book] = {}

    def _book(self, crawl: Crawl) -> Book:
        try:
            return self._books[crawl]
        except KeyError:
            raise NotFound(f"crawl_id: no crawl named {crawl.name!r}", field="crawl_id") from None

    def _frontier(self, crawl: Crawl) -> Frontier:
        return self._book(crawl).frontier

    # crawls

    async def crawl_put(self, crawl: Crawl, definition: bytes, at: float) -> bool:  # noqa: ARG002 - nothing ages here
        if crawl in self._books:
            self._books[crawl].definition = definition
            return False
        self._books[crawl] = Book(definition, Frontier(self._pace, self._quota))
        return True

    async def crawl_get(self, crawl: Crawl) -> bytes | None:
        return self._books[crawl].definition if crawl in self._books else None

    async def crawl_list(self, tenant: str) -> list[Crawl]:
        return sorted(crawl for crawl in self._books if crawl.tenant == tenant)

    async def crawl_delete(self, crawl: Crawl) -> bool:
        book = self._books.pop(crawl, None)
        if book is None:
            return False
        book.frontier.end_leases(list(book.frontier.leases.by_row))
        return True

    # the frontier

    async def discover(self, crawl: Crawl, links: Links, parents: Fetches | None, at: float) -> Discovery:
        return discovery.discover(self._frontier(crawl), links, parents, at)

    async def gather(self, crawl: Crawl, ask: Ask, limit: int, horizon_s: float, per_host: int) -> Batch:
        frontier = self._frontier(crawl)
        frontier.wake(ask.at)
        until = ask.at + horizon_s
        rows = frontier.best(limit, per_host, until)
        focus = self._focus(frontier, ask, until)
        if len(focus):
            rows = np.concatenate([focus, rows[~np.isin(rows, focus)]])
        return views.batch(frontier, rows)

    def _focus(self, frontier: Frontier, ask: Ask, until: float) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Some rows of the hosts the crawler works on, so that they are considered whatever their rank."""
        hosts = [host for name in ask.focus if (host := frontier.hosts.find(name)) is not None]
        hosts += frontier.hosts.of_domain(ask.domain_hash) if ask.domain_hash else []
        allowed = [host for host in hosts[:FOCUS_HOSTS] if self._opens(frontier, host) <= until]
        found = [frontier.queues.of_host(host, FOCUS_PER_HOST) for host in allowed]
        return np.concatenate(found).astype(np.int64) if found else np.zeros(0, np.int64)

    def _opens(self, frontier: Frontier, host: int) -> float:
        withheld = float(frontier.hosts.rows["withheld"][host])
        return max(withheld, float(self._pace.opens[frontier.hosts.pace_row[host]]))

    async def reserve(self, crawl: Crawl, batch: Batch, terms: LeaseTerms) -> Grants:
        return self._frontier(crawl).reserve(batch.id, terms)

    async def record(self, crawl: Crawl, fetches: Fetches, at: float, max_retries: int) -> Recorded:
        book = self._book(crawl)
        book.told.expire(at, 2 * len(fetches))
        return Outcomes(book.frontier, book.told, fetches.crawler_id, at, max_retries).record(fetches)

    async def rank(self, crawl: Crawl, ids: U64, priority: F64) -> None:
        frontier = self._frontier(crawl)
        frontier.rank(frontier.index.find(ids), priority)

    async def look(self, crawl: Crawl, ids: U64) -> Batch:
        frontier = self._frontier(crawl)
        rows = frontier.index.find(ids)
        return views.batch(frontier, rows[rows >= 0])

    async def parents(self, crawl: Crawl, ids: U64) -> Paths:
        frontier = self._frontier(crawl)
        rows = frontier.index.find(ids)
        newest = frontier.table["first_in"][rows[rows >= 0]]
        return _joined([frontier.links.parents(int(link)) for link in newest])

    async def children(self, crawl: Crawl, ids: U64) -> Paths:
        frontier = self._frontier(crawl)
        rows = frontier.index.find(ids)
        out = frontier.table[rows[rows >= 0]]
        pairs = zip(out["first_out"].tolist(), out["outs"].tolist(), strict=True)
        return _joined([frontier.links.children(first, count) for first, count in pairs])

    async def withhold(self, crawl: Crawl, hosts: Sequence[str], until: F64) -> None:
        frontier = self._frontier(crawl)
        rows = frontier.hosts.rows_of(hosts)
        frontier.queues.fit(0, len(frontier.hosts.rows))
        frontier.hosts.rows["withheld"][rows] = until
        frontier.any_withheld = True
        frontier.queues.open(rows)

    async def schedule(self, crawl: Crawl, ids: U64, due: F64) -> None:
        frontier = self._frontier(crawl)
        rows = frontier.index.find(ids)
        done = (rows >= 0) & (frontier.table["state"][rows] == DONE)
        frontier.queues.postpone(rows[done].astype(np.int32), due[done])

    async def drop(self, crawl: Crawl, ids: U64, reason: str) -> None:
        frontier = self._frontier(crawl)
        rows = frontier.index.find(ids)
        frontier.drop(rows[(rows >= 0) & (frontier.table["state"][rows] == QUEUED)], reason)

    async def revive(self, crawl: Crawl, ids: U64, deepest: int = -1) -> None:
        frontier = self._frontier(crawl)
        rows = frontier.index.find(ids)
        frontier.revive(rows[(rows >= 0) & (frontier.table["state"][rows] == DROPPED)], deepest)

    async def release(self, crawl: Crawl, crawler_id: str) -> int:
        return self._frontier(crawl).release(crawler_id)

    async def expire(self, crawl: Crawl, at: float) -> int:
        book = self._book(crawl)
        before = len(book.frontier.leases)
        book.frontier.wake(at)
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
        return self._book(crawl).states.get(name)

    async def state_put(self, crawl: Crawl, name: str, state: bytes, version: int) -> bool:
        states = self._book(crawl).states
        if name in states and states[name][1] >= version:
            return False
        states[name] = (state, version)
        return True

    # looking in

    async def find(self, crawl: Crawl, ids: U64) -> list[UrlRecord | None]:
        frontier = self._frontier(crawl)
        return [views.record(frontier, row) if row >= 0 else None for row in frontier.index.find(ids).tolist()]

    async def scan(
        self, crawl: Crawl, state: str | None, host: str | None, limit: int, cursor: str | None
    ) -> tuple[list[UrlRecord], str | None]:
        records, end = views.scan(self._frontier(crawl), state, host, limit, _start(cursor))
        return records, None if end is None else str(end)

    async def purge(self, crawl: Crawl, state: str | None, host: str | None) -> int:
        frontier, gone = self._frontier(crawl), 0
        for start in range(0, frontier.index.rows, views.SCANNED_AT_ONCE):
            rows = views.matching(frontier, state, host, start, start + views.SCANNED_AT_ONCE)
            rows = rows[frontier.table["state"][rows] != LEASED]
            if len(rows):
                frontier.forget(rows)
                gone += len(rows)
            await asyncio.sleep(0)  # others are served between the pieces of a long purge
        return gone

    async def control(
        self,
        queue: str,
        *,
        delay_s: float | None = None,
        block_until: float | None = None,
        limit: int | None = None,
    ) -> None:
        row = self._pace.row(queue)
        if delay_s is not None:
            self._pace.set_delay(row, delay_s)
        if block_until is not None:
            self._pace.block(row, block_until)
        if limit is not None:
            self._pace.set_limit(row, limit)
        for book in self._books.values():
            host = book.frontier.hosts.find(queue)
            if host is not None:
                book.frontier.queues.open(np.array([host], np.int32))

    async def wait(self, crawl: Crawl, at: float) -> float | None:
        """The first of: a host opens, a row's hour comes, a lease ends."""
        frontier = self._frontier(crawl)
        if frontier.queues.any_open():
            return 0.0
        ends = (frontier.queues.next_opening(), frontier.queues.next_due(), frontier.leases.next_end())
        instants = [end for end in ends if end is not None and end < np.inf]
        return max(min(instants) - at, 0.0) if instants else None

    async def stats(self, crawl: Crawl) -> Mapping[str, Any]:
        frontier = self._frontier(crawl)
        numbers = dict(zip(STATES[:3], frontier.states.tolist(), strict=False))
        dropped = {reason: count for reason, count in frontier.dropped.items() if count}
        keys = ("fetches", "failed", "relevant", "discovered", "evicted")
        return {**numbers, "dropped": dropped, "hosts": len(frontier.hosts)} | {k: frontier.counts[k] for k in keys}

    async def close(self) -> None:
        self._books.clear()


def _start(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isdecimal() or len(cursor) > 18:
        raise MalformedRequest(f"cursor: expected one that an earlier page gave, got {cursor[:40]!r}", field="cursor")
    return int(cursor)


def _joined(pieces: list[Paths]) -> Paths:
    if not pieces:
        none = np.zeros(0, np.uint64)
        return Paths(none, none, np.zeros(0, object), np.zeros(0, np.int32))
    columns = zip(*((p.parent, p.child, p.anchor, p.position) for p in pieces), strict=True)
    return Paths(*(np.concatenate(column) for column in columns))
