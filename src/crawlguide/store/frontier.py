"""All that is known of one crawl's URLs: their rows, queues, leases and links. A row is in exactly one state."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.tables import rows_of
from crawlguide.core.types import LEASED as GRANTED
from crawlguide.core.types import TAKEN, Grants
from crawlguide.store.columns import grown
from crawlguide.store.hosts import CrawlHosts
from crawlguide.store.index import Index
from crawlguide.store.kernels import blank, grant
from crawlguide.store.leases import Lease, Leases
from crawlguide.store.links import LinkTable
from crawlguide.store.queues import Queues
from crawlguide.store.rows import DONE, DROPPED, FREE, LEASED, QUEUED, ROW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64, I32, I64, U8, U64, Text
    from crawlguide.core.types import LeaseTerms
    from crawlguide.store.pace import Pace


@dataclass(frozen=True)
class Quota:
    """How much one crawl may remember."""

    urls: int
    urls_per_host: int
    links: int


class Frontier:
    """The tables of one crawl, and the moves a row can make between its states."""

    def __init__(self, pace: Pace, quota: Quota) -> None:
        self.pace = pace
        self.quota = quota
        self.table = grown(np.zeros(0, ROW), 1)
        self.urls: Text = np.zeros(0, object)
        self.metadata: dict[int, bytes] = {}
        self.index = Index()
        self.hosts = CrawlHosts(pace)
        self.queues = Queues()
        self.leases = Leases()
        self.links = LinkTable(quota.links)
        self.reasons: list[str] = []
        self.states = np.zeros(FREE + 1, np.int64)  # how many rows are in each state
        self.dropped: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.stamp = 0  # of the last page whose links were counted
        self.any_withheld = False
        self._sequence = 0

    def claim(self, ids: U64, urls: Text, hosts: Text, at: float) -> tuple[I64, I64]:
        """The row of each id, and 1 for those that are new. A new row is FREE: it belongs to no state yet."""
        rows, fresh = self.index.claim(ids)
        new = fresh.astype(np.bool_)
        if new.any():
            self._add(rows[new], urls[new], hosts[new], at)
        return rows, fresh

    def _add(self, rows: I64, urls: Text, hosts: Text, at: float) -> None:
        self.table = grown(self.table, self.index.rows)
        self.urls = grown(self.urls, self.index.rows, "")
        self.urls[rows] = urls
        blank.clear(rows, self.hosts.rows_of(hosts.tolist()), self._sequence, at, self.table)
        self._sequence += len(rows)
        self.states[FREE] += len(rows)
        self.queues.fit(len(self.table), len(self.hosts.rows))

    def move(self, rows: I64, state: int) -> None:
        """Count and mark; the caller sees to queues and leases."""
        np.subtract.at(self.states, self.table["state"][rows], 1)
        self.states[state] += len(rows)
        self.table["state"][rows] = state

    def start(self, rows: I64) -> None:
        """New rows, which are marked as waiting already, get their place in the queues."""
        self.states[FREE] -= len(rows)
        self.states[QUEUED] += len(rows)
        self._push(rows)

    def enqueue(self, rows: I64) -> None:
        """Rows wait for their turn, with the priority in their row."""
        self.move(rows, QUEUED)
        self._push(rows)

    def _push(self, rows: I64) -> None:
        facts = rows_of(self.table, rows)
        hosts, priority, sequence = (facts[name].copy() for name in ("host", "priority", "sequence"))
        self.queues.push(rows.astype(np.int32), hosts, priority, sequence)

    def drop(self, rows: I64, reason: str) -> None:
        """Rows that wait, or are new, stay known but are never given out."""
        if reason not in self.reasons:
            self.reasons.append(reason)
        self.queues.remove(rows.astype(np.int32))
        self.table["reason"][rows] = self.reasons.index(reason)
        self.dropped[reason] += len(rows)
        self.move(rows, DROPPED)

    def revive(self, rows: I64, deepest: int) -> None:
        """Dropped rows wait again, with the priority they had, except those that still lie too deep."""
        depth, bound = self.table["depth"][rows], self.table["max_depth"][rows]
        rows = rows[((bound < 0) | (depth <= bound)) & ((deepest < 0) | (depth <= deepest))]
        self._undrop(rows)
        self.enqueue(rows)

    def _undrop(self, rows: I64) -> None:
        for reason in self.table["reason"][rows]:
            self.dropped[self.reasons[reason]] -= 1

    def finish(self, row: int) -> None:
        """One row is done, wherever it was."""
        here = np.array([row])
        if self.table["state"][row] == DROPPED:
            self._undrop(here)
        self.end_leases([row])
        self.queues.remove(here.astype(np.int32))
        self.move(here, DONE)

    def forget(self, rows: I64) -> None:
        """Unknown from now on. Leased rows must not be among them."""
        self._undrop(rows[self.table["state"][rows] == DROPPED])
        self.queues.remove(rows.astype(np.int32))
        np.subtract.at(self.states, self.table["state"][rows], 1)
        self.table["state"][rows] = FREE
        self.urls[rows] = ""
        for row in rows.tolist():
            self.metadata.pop(row, None)
        self.index.forget(rows)

    def _evict(self) -> None:
        """Over quota the lowest-ranked waiting rows go, never one in flight."""
        while self.states[QUEUED] > self.quota.urls and (worst := self.queues.worst()) is not None:
            row = np.array([worst])
            if self.table["state"][worst] == LEASED:
                self.queues.pass_over(row.astype(np.int32))
            else:
                self.counts["evicted"] += 1
                self.forget(row)

    def _evict_from(self, hosts: Sequence[int]) -> None:
        """The same for hosts that are over their own quota."""
        for host in hosts:
            while self.queues.waiting(host) > self.quota.urls_per_host:
                self.counts["evicted"] += 1
                self.forget(np.array([self.queues.worst_of_host(host)]))

    def wake(self, at: float) -> None:
        """Ended leases and rows whose hour has come wait for their turn again, a bounded number of these a call."""
        ended = self.leases.expired(at)
        if ended:
            self._back(ended)
        due = self.queues.due(at)
        if len(due):
            self.enqueue(due.astype(np.int64))

    def best(self, limit: int, per_host: int, until: float) -> I64:
        """The best waiting rows of hosts that open by `until` and are not withheld longer, best first."""
        while True:
            rows = self.queues.best(limit, per_host, until, self.pace.opens, self.hosts.pace_row).astype(np.int64)
            held = self._withheld(rows, until) if self.any_withheld else np.zeros(0, np.int32)
            if not len(held):
                return rows
            self.queues.shut(held, self.hosts.rows["withheld"][held])

    def _withheld(self, rows: I64, until: float) -> I32:
        hosts = np.unique(self.table["host"][rows])
        held: I32 = hosts[self.hosts.rows["withheld"][hosts] > until]
        return held

    def reserve(self, ids: U64, terms: LeaseTerms) -> Grants:
        """Lease what is still waiting and polite to fetch; the hosts' slots are taken in the order of the rows."""
        rows, hosts, pace = self.index.find(ids), self.hosts, self.pace
        outcome, start = np.empty(len(ids), np.uint8), np.empty(len(ids))
        count = grant.reserve(
            rows, self.table, hosts.rows, pace.rows, pace.opens, hosts.domain_pages,
            terms.at, terms.delay_s, terms.horizon_s, terms.strict, outcome, start,
        )  # fmt: skip
        if count:
            granted = slice(None) if count == len(rows) else np.flatnonzero(outcome == GRANTED)
            self._leased(rows[granted], start[granted], terms)
        if count < len(rows):
            self._find_own(rows, terms, outcome, start)
        known = self.metadata
        return Grants(outcome, start, [known.get(row) for row in rows.tolist()] if known else [None] * len(rows))

    def _find_own(self, rows: I64, terms: LeaseTerms, outcome: U8, start: F64) -> None:
        """A request that comes again gets what it holds already."""
        for number in np.flatnonzero(outcome == TAKEN).tolist():
            lease = self.leases.by_row.get(int(rows[number]))
            if lease and terms.request_id and lease.holder == (terms.crawler_id, terms.request_id):
                outcome[number], start[number] = GRANTED, lease.rows[int(rows[number])]

    def _leased(self, rows: I64, start: F64, terms: LeaseTerms) -> None:
        self.queues.take_out(rows.astype(np.int32))
        self.states[QUEUED] -= len(rows)
        self.states[LEASED] += len(rows)
        expires = terms.at + terms.lease_s
        starts = dict(zip(rows.tolist(), start.tolist(), strict=True))
        self.leases.add(Lease(terms.crawler_id, terms.request_id, expires, starts, terms.strict))
        if terms.strict:
            self.queues.shut(self.table["host"][rows], np.full(len(rows), expires))

    def release(self, crawler_id: str) -> int:
        rows = self.leases.held_by(crawler_id)
        if rows:
            self._back(rows)
        return len(rows)

    def give_back(self, row: int, crawler_id: str) -> bool:
        """A crawler returns one lease unjudged; False if it does not hold it."""
        lease = self.leases.by_row.get(row)
        if lease is None or lease.crawler_id != crawler_id:
            return False
        self.leases.end([row])
        self._back([row])
        return True

    def end_leases(self, rows: Sequence[int]) -> None:
        """Leases end because the fetch was told; the caller decides what becomes of the rows."""
        ended = self.leases.end(rows)
        if ended:
            self._leave(np.array(ended))

    def _back(self, rows: Sequence[int]) -> None:
        back = np.array(rows)
        self._leave(back)
        self.enqueue(back)

    def _leave(self, rows: I64) -> None:
        hosts = self.table["host"][rows]
        self.pace.leave(self.hosts.pace_row[hosts].astype(np.int64))
        np.subtract.at(self.hosts.domain_pages, self.hosts.rows["domain"][hosts], 1)
        self.hosts.rows["withheld"][hosts] = -np.inf  # what was withheld because of these leases gets a new hearing
        self.queues.open(hosts)

    def rank(self, rows: I64, priority: F64) -> None:
        """New priorities; then, over quota, the lowest-ranked go."""
        known = rows >= 0
        rows, priority = rows[known], priority[known]
        self.table["priority"][rows] = priority
        self.queues.rank(rows.astype(np.int32), priority)
        self._evict()
        if self.quota.urls_per_host < self.quota.urls:
            self._evict_from(np.unique(self.table["host"][rows]).tolist())
