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
from crawlguide.store.kernels import blank, grant, told
from crawlguide.store.leases import Lease, Leases
from crawlguide.store.links import LinkTable
from crawlguide.store.queues import Queues
from crawlguide.store.rows import DONE, DROPPED, FREE, LEASED, QUEUED, ROW
from crawlguide.store.shelves import Texts, key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.config import StoreOptions
    from crawlguide.core.tables import F64, I32, I64, U8, U64, Text
    from crawlguide.core.types import LeaseTerms, Paths
    from crawlguide.store.changes import Watch
    from crawlguide.store.links import LinkRun
    from crawlguide.store.pace import Pace
    from crawlguide.store.shelves import Shelves


@dataclass(frozen=True)
class Quota:
    """How much one crawl may remember."""

    urls: int  # waiting
    urls_per_host: int
    links: int
    done: int = 20_000_000  # fetched or dropped
    keep_done_s: float = float("inf")

    @classmethod
    def of(cls, options: StoreOptions) -> Quota:
        keep_s = options.keep_done_days * 86_400.0
        return cls(options.max_urls, options.max_urls_per_host, options.max_links, options.max_done, keep_s)


class Frontier:
    """The tables of one crawl, and the moves a row can make between its states."""

    def __init__(self, pace: Pace, quota: Quota, shelves: Shelves, changes: Watch) -> None:
        self.pace = pace
        self.quota = quota
        self.changes = changes
        self.table = grown(np.zeros(0, ROW), 1)
        self.urls = Texts(shelves.urls)
        self.index = Index()
        self.hosts = CrawlHosts(pace, shelves.hosts)
        self.queues = Queues(self.table)
        self.leases = Leases(shelves.leases)
        self.links = LinkTable(shelves.links)
        self.links_kept = 0
        self.reasons: list[str] = []
        self.states = np.zeros(FREE + 1, np.int64)  # how many rows are in each state
        self.dropped: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.stamp = 0  # of the last page whose links were counted
        self.any_withheld = False
        self.sequence = 0  # of the next row to be discovered
        self.swept = 0  # up to here old rows were looked for
        self._metadata = shelves.metadata

    def claim(self, ids: U64, urls: Text, hosts: Text, at: float) -> tuple[I64, I64]:
        """The row of each id, and 1 for those that are new. A new row is FREE: it belongs to no state yet."""
        rows, fresh = self.index.claim(ids)
        new = fresh.astype(np.bool_)
        if new.any():
            self._add(rows[new], urls[new], hosts[new], at)
        return rows, fresh

    def _add(self, rows: I64, urls: Text, hosts: Text, at: float) -> None:
        self.table = grown(self.table, self.index.rows)
        self.urls.put(rows, urls)
        known = self.hosts.rows_of(hosts.tolist())
        blank.clear(rows, known, self.sequence, at, self.table, self.hosts.rows)
        self.sequence += len(rows)
        self.states[FREE] += len(rows)
        self.queues.fit(len(self.table), len(self.hosts.rows))
        self.changes.rows(rows)

    def id_of(self, row: int) -> int:
        return int(self.index.ids[row])

    def parents(self, row: int, most: int | None = None) -> Paths:
        """The pages known to link to a row's URL, newest first."""
        return self.links.parents(self.id_of(row), int(self.table["newest_in"][row]), most)

    def children(self, row: int) -> I64:
        """The rows that the URL of this row leads to, as far as they count it among their parents."""
        run = self.links.run(self.id_of(row))
        rows = self.rows_in(run)[: run.live]
        return rows[rows >= 0]

    def rows_in(self, run: LinkRun) -> I64:
        """The row of each link's target, -1 where it was forgotten since the links were written."""
        rows = self.index.find(run.child.copy())  # what was read from a shelf is read-only
        return np.where(self.table["sequence"][rows] < run.sequence, rows, -1)

    def note(self, row: int, metadata: bytes) -> None:
        """Metadata goes with the URL when it is given out; what came first stays."""
        if not self.table["noted"][row]:
            self.table["noted"][row] = 1
            self._metadata.put(key_of(row), metadata)
            self.changes.row(row)

    def notes(self, rows: I64) -> list[bytes | None]:
        """The metadata of each row."""
        found: list[bytes | None] = [None] * len(rows)
        for number in np.flatnonzero(self.table["noted"][rows]).tolist():
            found[number] = self._metadata.get(key_of(int(rows[number])))
        return found

    def move(self, rows: I64, state: int) -> None:
        """Count and mark; the caller sees to queues and leases."""
        self.changes.rows(rows)
        told.move(rows, state, self.table, self.states)

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
        self._clear(rows)
        self.index.forget(rows)
        self.changes.rows(rows)

    def _clear(self, rows: I64) -> None:
        """What lies on the shelves of these rows goes, and hosts of which nothing is left."""
        facts = rows_of(self.table, rows)
        self.urls.forget(rows.tolist())
        for row in rows[facts["noted"] > 0].tolist():
            self._metadata.delete(key_of(row))
        for row in rows[facts["outs"] > 0].tolist():
            self.links.forget(self.id_of(row))
        self.links_kept -= int(facts["outs"].sum())
        np.subtract.at(self.hosts.rows["urls"], facts["host"], 1)
        hosts = np.unique(facts["host"])
        self.changes.hosts(hosts)  # not only through their rows, which may serve other hosts soon
        for host in hosts[self.hosts.rows["urls"][hosts] == 0].tolist():
            self.hosts.forget(host)

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

    def postpone(self, rows: I64, due: F64) -> None:
        """Rows wait for an instant instead of their turn."""
        self.queues.postpone(rows.astype(np.int32), due)
        self.changes.rows(rows)

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
            terms.at, terms.delay_s, terms.factor, terms.horizon_s, terms.strict, terms.limit, outcome, start,
        )  # fmt: skip
        if count:
            granted = slice(None) if count == len(rows) else np.flatnonzero(outcome == GRANTED)
            self._leased(rows[granted], start[granted], terms)
        if count < len(rows):
            self._find_own(rows, terms, outcome, start)
        return Grants(outcome, start, self.notes(rows))

    def _find_own(self, rows: I64, terms: LeaseTerms, outcome: U8, start: F64) -> None:
        """A request that comes again gets what it holds already."""
        for number in np.flatnonzero(outcome == TAKEN).tolist():
            lease = self.leases.by_row.get(int(rows[number]))
            if lease and terms.request_id and lease.holder == (terms.crawler_id, terms.request_id):
                outcome[number], start[number] = GRANTED, lease.rows[int(rows[number])]

    def _leased(self, rows: I64, start: F64, terms: LeaseTerms) -> None:
        self.changes.given(rows)
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
        hosts = np.empty(len(rows), np.int32)
        told.leave(rows, self.table, self.hosts.rows, self.pace.rows, self.hosts.domain_pages, hosts)
        self.queues.open(hosts)

    def give(self, rows: I64, given: F64) -> None:
        """Priorities set by hand, NaN to lift one; whoever sets them ranks anew."""
        self.table["given"][rows] = given
        self.changes.rows(rows)

    def rank(self, rows: I64, priority: F64) -> None:
        """New priorities; then, over quota, the lowest-ranked go."""
        known = rows >= 0
        rows, priority = rows[known], priority[known]
        self.queues.rank(rows.astype(np.int32), priority)
        self.changes.rows(rows)
        self._evict()
        if self.states[QUEUED] > self.quota.urls_per_host:  # else no host can be over its quota
            self._evict_from(np.unique(self.table["host"][rows]).tolist())
