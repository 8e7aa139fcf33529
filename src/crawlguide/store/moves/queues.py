"""Queues: those that clients name. Each belongs to one crawl alone, is served as a whole and then left alone.

A row waits in the queue that its client named. Rows with a date stand before all others, the earliest first; the others
stand where the strategy ranks them. Both are one order, since a date is kept as a priority that was set by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.types import DATED, GRANTED, TAKEN, Grants, QueuedUrl, QueueFacts
from crawlguide.store import views
from crawlguide.store.crawls import QUEUES, Crawls
from crawlguide.store.tables.leases import Lease
from crawlguide.store.tables.rows import DONE, DROPPED, FREE, LEASED, QUEUED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64, I32, I64, U64, Mask
    from crawlguide.core.types import Batch, Crawl, LeaseTerms, QueueAsk, Revisits
    from crawlguide.store.frontier import Frontier

LIMIT = b"queue limit "  # begins the names of states
LATEST = 2**40 - 1  # a date beyond counts as this one


class Queueing(Crawls):
    async def queues_begin(self, crawl: Crawl, mark: str) -> None:
        data = self.data(crawl)
        data.states.put(QUEUES, mark.encode())
        data.find_queues(crawl)

    async def queues_named(self, crawl: Crawl) -> bool:
        return crawl in self.crawls and self.crawls[crawl].names_queues

    # what goes out

    async def queues_open(self, crawl: Crawl, ask: QueueAsk) -> Batch:
        frontier = self.frontier(crawl)
        frontier.wake(ask.at)
        limits = self._limits(crawl)
        hosts = _open(frontier, ask, limits) if ask.key is None else _one_open(frontier, ask, limits)
        found: list[I32] = []
        left = ask.most * ask.spare
        for host in hosts.tolist():
            if left <= 0:
                break
            found.append(frontier.queues.waiting.best_of(host, ask.per_queue * ask.spare))
            left -= len(found[-1])
        return views.batch(frontier, np.concatenate(found).astype(np.int64) if found else np.zeros(0, np.int64))

    async def queues_serve(self, crawl: Crawl, ids: U64, terms: LeaseTerms) -> Grants:
        self.before_change(terms.at)
        frontier = self.frontier(crawl)
        rows = frontier.index.find(ids)
        waits = (rows >= 0) & (frontier.table["state"][rows] == QUEUED) & np.isnan(frontier.table["due"][rows])
        granted = rows[waits]
        if len(granted):
            frontier.table["state"][granted] = LEASED
            _leave_alone(frontier, frontier.table["host"][granted], terms)
            starts = dict.fromkeys(granted.tolist(), terms.at)
            frontier.lease(granted, Lease(terms.crawler_id, None, terms.at + terms.lease_s, starts))
        outcome = np.where(waits, GRANTED, TAKEN).astype(np.uint8)
        return Grants(outcome, np.full(len(rows), terms.at), frontier.metadata(rows))

    # what comes in

    async def revisit(self, crawl: Crawl, revisits: Revisits, at: float) -> int:
        self.before_change(at)
        frontier = self.frontier(crawl)
        rows, new = frontier.claim(revisits.id, revisits.url, revisits.host, at)
        last = {row: number for number, row in enumerate(rows.tolist())}
        for row, number in last.items():
            frontier.set_metadata(row, revisits.metadata[number])
        numbers = np.fromiter(last.values(), np.int64)
        frontier.table["depth"][rows[new > 0]] = 0
        _settle(frontier, rows[numbers], revisits.date[numbers], at)
        self._reopen(crawl, revisits.host.tolist())
        frontier.counts["discovered"] += int(new.sum())
        return int(new.sum())

    # what is set

    async def queue_control(
        self,
        crawl: Crawl,
        key: str,
        *,
        delay_s: float | None = None,
        block_until: float | None = None,
        limit: int | None = None,
    ) -> bool:
        frontier = self.frontier(crawl)
        host = frontier.hosts.find(key)
        if host is None:
            return False
        politeness, row = frontier.politeness, int(frontier.hosts.queue_row[host])
        if delay_s is not None:
            queue = politeness.rows[row]
            queue["delay"], queue["next_fetch"] = delay_s, queue["last"] + delay_s
            politeness.reopen(row)
        if block_until is not None:
            politeness.block(row, block_until)
        politeness.touched.add(row)
        if limit is not None:
            self._set_limit(crawl, key, limit)
        frontier.queues.waiting.open(np.array([host], np.int32))
        return True

    async def queue_begin_anew(self, crawl: Crawl, key: str) -> None:
        frontier = self.frontier(crawl)
        host = frontier.hosts.find(key)
        if host is not None:
            self._set_limit(crawl, key, 0)
            frontier.politeness.begin_anew(int(frontier.hosts.queue_row[host]))

    def _limits(self, crawl: Crawl) -> dict[str, int]:
        data = self.data(crawl)
        if data.page_limits is None:
            found = ((key, value) for key, value in data.states.items() if key.startswith(LIMIT))
            data.page_limits = {key[len(LIMIT) :].decode(): int.from_bytes(value, "big") for key, value in found}
        return data.page_limits

    def _set_limit(self, crawl: Crawl, key: str, limit: int) -> None:
        limits, states = self._limits(crawl), self.data(crawl).states
        if limit:
            limits[key] = limit
            states.put(LIMIT + key.encode(), limit.to_bytes(4, "big"))
        elif limits.pop(key, None):
            states.delete(LIMIT + key.encode())

    def _reopen(self, crawl: Crawl, keys: Sequence[str]) -> None:
        """Of queues with a limit less may be done than before: they may be served again; the limit of none goes."""
        frontier, limits = self.frontier(crawl), self._limits(crawl)
        for key in limits.keys() & set(keys) if limits else ():
            host = frontier.hosts.find(key)
            if host is None:
                self._set_limit(crawl, key, 0)
            else:
                frontier.queues.waiting.open(np.array([host], np.int32))

    # what people look at

    async def queue_facts(self, crawl: Crawl, key: str | None, at: float) -> QueueFacts:
        frontier = self.frontier(crawl)
        frontier.wake(at)
        hosts = frontier.hosts
        if key is None:
            active, leased = int(frontier.states[QUEUED] + frontier.states[LEASED]), int(frontier.states[LEASED])
            active_queues = int(np.count_nonzero(_active(frontier)))
            return QueueFacts(active, leased, int(frontier.states[DONE]), len(hosts), active_queues)
        host = hosts.find(key)
        if host is None:
            return QueueFacts(0, 0, 0, 0, 0)
        leased, active = int(frontier.politeness.rows["leases"][hosts.queue_row[host]]), int(_active(frontier)[host])
        return QueueFacts(active, leased, int(hosts.done[host]), 1, int(active > 0))

    async def queue_names(
        self, crawl: Crawl, start: int, most: int, at: float, *, inactive: bool = False
    ) -> Sequence[str]:
        frontier = self.frontier(crawl)
        hosts = frontier.hosts
        shown: Mask = hosts.rows["urls"][: hosts.end] > 0
        if not inactive:
            blocked = frontier.politeness.rows["blocked"][hosts.queue_row[: hosts.end]] > at
            shown = (_active(frontier) > 0) & ~blocked
        names: list[str] = hosts.names[np.flatnonzero(shown)[start : start + most]].tolist()
        return names

    async def queue_ids(self, crawl: Crawl, key: str | None, before: float = np.inf) -> U64:
        frontier = self.frontier(crawl)
        rows = views.matching(frontier, None, key, 0, frontier.index.rows)
        if before < np.inf:
            rows = rows[frontier.table["discovered"][rows] < before]
        return frontier.index.ids[rows]

    async def queue_urls(self, crawl: Crawl, ids: U64) -> list[QueuedUrl | None]:
        frontier = self.frontier(crawl)
        rows = frontier.index.find(ids)
        known = rows[rows >= 0]
        urls, metadata = frontier.urls.take(known).tolist(), frontier.metadata(known)
        facts = frontier.table[known]
        dates = np.where(facts["state"] == DONE, 0, _dates(facts["given"], facts["discovered"]))
        created = np.maximum(facts["discovered"], 1.0).astype(np.int64).tolist()
        found = map(
            QueuedUrl,
            urls,
            frontier.hosts.names[facts["host"]].tolist(),
            metadata,
            dates.astype(np.int64).tolist(),
            created,
        )
        return [next(found) if row >= 0 else None for row in rows.tolist()]

    async def queue_forget(self, crawl: Crawl, ids: U64, *, leased: bool = True) -> tuple[int, int]:
        self.before_change(0.0)
        frontier = self.frontier(crawl)
        rows = frontier.index.find(ids)
        rows = rows[rows >= 0]
        if not leased:
            rows = rows[frontier.table["state"][rows] != LEASED]
        active = int(np.count_nonzero(frontier.table["state"][rows] != DONE))
        keys = frontier.hosts.names[np.unique(frontier.table["host"][rows])].tolist()
        frontier.end_leases(rows.tolist())
        if len(rows):
            frontier.forget(rows)
        self._reopen(crawl, keys)
        return len(rows), active


def _one_open(frontier: Frontier, ask: QueueAsk, limits: dict[str, int]) -> I64:
    """The queue that is named, if it may be served."""
    host = frontier.hosts.find(ask.key or "")
    hosts = np.array([] if host is None else [host], np.int64)
    hosts = hosts[(frontier.opens(hosts) <= min(ask.at, ask.opened_by)) & _has_room(frontier, hosts, ask)]
    return hosts[:0] if len(_full(frontier, hosts, limits)) else hosts


def _open(frontier: Frontier, ask: QueueAsk, limits: dict[str, int]) -> I64:
    """Queues that may be served, the one whose best row is best first. Those that are full are set aside."""
    waiting, opens, queue_row = frontier.queues.waiting, frontier.politeness.opens, frontier.hosts.queue_row
    limit = ask.queues
    while True:
        heads = waiting.best(limit, 1, min(ask.at, ask.opened_by), opens, queue_row)
        hosts = frontier.table["host"][heads].astype(np.int64)
        full = _full(frontier, hosts, limits)
        if len(full):
            waiting.shut(full.astype(np.int32), np.full(len(full), np.inf))
            continue
        good = hosts[_has_room(frontier, hosts, ask)]
        if len(good) >= ask.queues or len(heads) < limit:
            return good[: ask.queues]
        limit *= 4


def _full(frontier: Frontier, hosts: I64, limits: dict[str, int]) -> I64:
    """Queues of which as many URLs are done as may be."""
    if not limits:
        return hosts[:0]
    most = np.array([limits.get(name, np.inf) for name in frontier.hosts.names[hosts].tolist()])
    return hosts[frontier.hosts.done[hosts] >= most]


def _has_room(frontier: Frontier, hosts: I64, ask: QueueAsk) -> Mask:
    """Whoever holds as many URLs of a queue as it wants gets no more of it."""
    room: Mask = frontier.politeness.rows["leases"][frontier.hosts.queue_row[hosts]] < ask.per_queue
    return room


def _leave_alone(frontier: Frontier, host_of_row: I64, terms: LeaseTerms) -> None:
    """Queues that were served are closed for their delay."""
    hosts, politeness = frontier.hosts, frontier.politeness
    np.add.at(hosts.domain_pages, hosts.rows["domain"][host_of_row], 1)  # as the end of a lease takes it back
    queues = hosts.queue_row[host_of_row]
    np.add.at(politeness.rows["leases"], queues, 1)
    served = np.unique(queues)
    delay = politeness.rows["delay"][served]
    opens = terms.at + np.where(np.isnan(delay), terms.delay_s, delay)
    politeness.rows["last"][served] = terms.at
    politeness.rows["next_fetch"][served] = opens
    politeness.opens[served] = np.maximum(opens, politeness.rows["blocked"][served])


def _settle(frontier: Frontier, rows: I64, date: F64, at: float) -> None:
    """Rows are done for ever, wait for their turn, or for their date."""
    table, due_at = frontier.table, np.minimum(date, LATEST)
    leased, states = table["state"][rows] == LEASED, table["state"][rows]
    dropped = rows[states == DROPPED]
    if len(dropped):
        frontier.uncount_dropped(dropped)
    if leased.any():
        frontier.end_leases(rows[leased].tolist())
        frontier.counts["fetches"] += int(leased.sum())
        table["fetched"][rows[leased]] = at
    frontier.queues.remove(rows[states != FREE].astype(np.int32))
    done, later = date == 0, due_at > at
    table["given"][rows] = np.where(done, np.nan, _order(due_at))
    table["priority"][rows[~done]] = table["given"][rows[~done]]
    if done.any():
        frontier.move(rows[done], DONE)
    if not done.all():
        now = ~done & ~later
        frontier.enqueue(rows[now])
        frontier.move(rows[later], QUEUED)
        frontier.postpone(rows[later], due_at[later])


def _order(date: F64) -> F64:
    """The earlier the larger, and before all that is ranked; exact for whole seconds."""
    order: F64 = DATED + (LATEST + 1 - np.floor(date)) / 2.0**41
    return order


def _dates(given: F64, discovered: F64) -> F64:
    """What `_order` was made of; a row that nobody gave a date has been waiting since it was found."""
    dates: F64 = np.where(given >= DATED, LATEST + 1 - (given - DATED) * 2.0**41, np.maximum(np.floor(discovered), 1.0))
    return dates


def _active(frontier: Frontier) -> I64:
    """How many rows of each queue wait or are leased."""
    hosts = frontier.hosts
    active: I64 = hosts.rows["urls"][: hosts.end] - hosts.done[: hosts.end]
    return active
