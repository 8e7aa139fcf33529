"""The frontier of one crawl: every URL it knows, and the moves of a URL between its states.

A row is in exactly one state: queued, leased, done or dropped; FREE while it belongs to none. The operations of a
store (`store/moves`) are made of the moves below, which keep tables, queues, leases and counts in step.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import i32s, i64s, kernel, nothing, one_f64, one_i64, records
from crawlguide.core.tables import rows_of
from crawlguide.store.columns import grown
from crawlguide.store.queues.waiting import Queues
from crawlguide.store.tables.hosts import CrawlHosts
from crawlguide.store.tables.index import Index
from crawlguide.store.tables.keyspace import UrlTexts, key_of
from crawlguide.store.tables.leases import Leases
from crawlguide.store.tables.links import LinkTable
from crawlguide.store.tables.rows import DONE, DROPPED, FREE, HOST, LEASED, QUEUED, ROW, TABLES, Tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64, I64, U64, Text
    from crawlguide.core.types import Paths
    from crawlguide.store.dirty import DirtyRows
    from crawlguide.store.moves.rank import Quota
    from crawlguide.store.tables.keyspace import Keyspaces
    from crawlguide.store.tables.leases import Lease
    from crawlguide.store.tables.links import LinkRun
    from crawlguide.store.tables.politeness import PolitenessQueues

DEEPEST = np.iinfo(np.int16).max
BYTES_OF_URL = ROW.itemsize + 64  # its row, its id and its places in index and queues
BYTES_OF_LINK = 40
HELD = "holds_due"
TEXTS = "text_bytes"  # of URLs and metadata, counted as they come


class Frontier:
    """The tables of one crawl. What changes in them is reported to `dirty`."""

    def __init__(self, politeness: PolitenessQueues, quota: Quota, keyspaces: Keyspaces, dirty: DirtyRows) -> None:
        self.politeness = politeness
        self.quota = quota
        self.dirty = dirty
        self.table = grown(np.zeros(0, ROW), 1)
        self.urls = UrlTexts(keyspaces.urls)
        self.index = Index()
        self.hosts = CrawlHosts(politeness, keyspaces.hosts)
        self.tables = Tables(self.table, self.hosts.rows, politeness.rows, politeness.opens, self.hosts.domain_pages)
        self.queues = Queues(self.table)
        self.leases = Leases(keyspaces.leases)
        self.links = LinkTable(keyspaces.links)
        self.links_kept = 0
        self.reasons: list[str] = []
        self.states = np.zeros(FREE + 1, np.int64)  # how many rows are in each state
        self.dropped: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.stamp = 0  # of the last page whose links were counted
        self.any_withheld = False
        self.sequence = 0  # of the next row to be discovered
        self.swept = 0  # up to here old rows were looked for
        self._metadata = keyspaces.metadata

    # rows and what hangs on them

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
        self.counts[TEXTS] += sum(map(len, urls.tolist()))
        host_rows = self.hosts.rows_of(hosts.tolist())
        clear(rows, host_rows, self.sequence, at, self.table, self.hosts.rows)
        self.sequence += len(rows)
        self.states[FREE] += len(rows)
        self.queues.fit(len(self.table), len(self.hosts.rows))
        self.dirty.rows(rows)

    @property
    def nbytes(self) -> int:
        """About what all of it takes, in memory and on the disk."""
        return BYTES_OF_URL * self.index.live + BYTES_OF_LINK * self.links_kept + self.counts[TEXTS]

    def take(self, ids: U64) -> Text:
        """The URL of each id, read late: by then a row may serve another URL. Empty where it was forgotten."""
        return self.urls.take(self.index.find(ids))

    def id_of(self, row: int) -> int:
        return int(self.index.ids[row])

    def opens(self, hosts: I64) -> F64:
        """When each host may be fetched again, as politeness and whoever withholds it say."""
        withheld, queues = self.hosts.rows["withheld"][hosts], self.hosts.queue_row[hosts]
        opens: F64 = np.maximum(withheld, self.politeness.opens[queues])
        return opens

    def parents(self, row: int, most: int | None = None) -> Paths:
        """The pages that link to a row's URL, newest first."""
        return self.links.parents(self.id_of(row), int(self.table["newest_in"][row]), most)

    def children(self, row: int) -> I64:
        """The rows that the URL of this row leads to, as far as they count it among their parents."""
        run = self.links.run(self.id_of(row))
        rows = self.rows_in(run)[: run.live]
        return rows[rows >= 0]

    def rows_in(self, run: LinkRun) -> I64:
        """The row of each link's target, -1 where it was forgotten since the links were written."""
        rows = self.index.find(run.child.copy())  # what was read from a keyspace is read-only
        return np.where(self.table["sequence"][rows] < run.sequence, rows, -1)

    def add_metadata(self, row: int, metadata: bytes) -> None:
        """Metadata is handed out with the URL when it is leased; what came first stays."""
        if not self.table["noted"][row]:
            self.table["noted"][row] = 1
            self._metadata.put(key_of(row), metadata)
            self.counts[TEXTS] += len(metadata)
            self.dirty.row(row)

    def set_metadata(self, row: int, metadata: bytes | None) -> None:
        """What came last counts, for whoever says so."""
        if self.table["noted"][row]:
            self.table["noted"][row] = 0
            self.counts[TEXTS] -= len(self._metadata.get(key_of(row)) or b"")
            self._metadata.delete(key_of(row))
            self.dirty.row(row)
        if metadata is not None:
            self.add_metadata(row, metadata)

    def metadata(self, rows: I64) -> list[bytes | None]:
        """The metadata of each row."""
        column: list[bytes | None] = [None] * len(rows)
        for number in np.flatnonzero(self.table["noted"][rows]).tolist():
            column[number] = self._metadata.get(key_of(int(rows[number])))
        return column

    # queued

    def start(self, rows: I64) -> None:
        """New rows, which are marked as queued already, get their place in the queues."""
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

    def postpone(self, rows: I64, due: F64) -> None:
        """Rows wait for an instant instead of their turn."""
        self.queues.postpone(rows.astype(np.int32), due)
        self.dirty.rows(rows)

    def move(self, rows: I64, state: int) -> None:
        """Mark and count; the caller sees to queues and leases."""
        self.dirty.rows(rows)
        mark(rows, state, self.table, self.states, self.hosts.done)

    # leased

    def lease(self, rows: I64, lease: Lease) -> None:
        """Rows that are marked as leased already leave the queues; under strict politeness their hosts shut."""
        self.dirty.assigned(rows)
        self.queues.waiting.remove(rows.astype(np.int32))
        self.states[QUEUED] -= len(rows)
        self.states[LEASED] += len(rows)
        self.leases.add(lease)
        if lease.strict:
            self.queues.waiting.shut(self.table["host"][rows], np.full(len(rows), lease.expires))

    def end_leases(self, rows: Sequence[int]) -> None:
        """The leases of those rows that have one end; the caller decides what becomes of the rows."""
        ended = self.leases.end(rows)
        if ended:
            self._free_hosts(np.array(ended))

    def requeue(self, rows: Sequence[int]) -> None:
        """Rows whose leases ended without a fetch wait again."""
        if rows:
            back = np.array(rows)
            self._free_hosts(back)
            self.enqueue(back)

    def _free_hosts(self, rows: I64) -> None:
        """The hosts of leases that ended get a new chance."""
        hosts = np.empty(len(rows), np.int32)
        end_lease(rows, self.tables, hosts)
        self.queues.waiting.open(hosts)

    def wake(self, at: float) -> None:
        """Expired leases, and a bounded number of the rows that are due by now, wait for their turn again."""
        self.requeue(self.leases.expired(at))
        due = self.queues.take_due(at) if not self.counts[HELD] else ()
        if len(due):
            self.enqueue(np.asarray(due, np.int64))

    def hold_due(self, held: bool) -> None:
        """Whether rows that are due stay where they are until somebody takes them out."""
        self.counts[HELD] = int(held)

    # done

    def finish(self, row: int) -> None:
        """One row is done, whatever state it was in."""
        here = np.array([row])
        if self.table["state"][row] == DROPPED:
            self.uncount_dropped(here)
        self.end_leases([row])
        self.queues.remove(here.astype(np.int32))
        self.move(here, DONE)

    # dropped

    def drop(self, rows: I64, reason: str) -> None:
        """Queued or new rows stay known but are never leased."""
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
        self.uncount_dropped(rows)
        self.enqueue(rows)

    def uncount_dropped(self, rows: I64) -> None:
        for reason in self.table["reason"][rows]:
            self.dropped[self.reasons[reason]] -= 1

    # forgotten

    def forget(self, rows: I64) -> None:
        """Unknown from now on. Leased rows must not be among them."""
        self.uncount_dropped(rows[self.table["state"][rows] == DROPPED])
        self.queues.remove(rows.astype(np.int32))
        np.subtract.at(self.states, self.table["state"][rows], 1)
        np.subtract.at(self.hosts.done, self.table["host"][rows[self.table["state"][rows] == DONE]], 1)
        self.table["state"][rows] = FREE
        self._clear_keyspaces(rows)
        self._forget_hosts(rows)
        self.index.forget(rows)
        self.dirty.rows(rows)

    def _clear_keyspaces(self, rows: I64) -> None:
        self.counts[TEXTS] -= self.counts[TEXTS] * len(rows) // self.index.live  # their share, unread
        facts = rows_of(self.table, rows)
        self.urls.forget(rows.tolist())
        for row in rows[facts["noted"] > 0].tolist():
            self._metadata.delete(key_of(row))
        for row in rows[facts["outs"] > 0].tolist():
            self.links.forget(self.id_of(row))
        self.links_kept -= int(facts["outs"].sum())

    def _forget_hosts(self, rows: I64) -> None:
        """Hosts of which no URL is left go with their last one."""
        host_of_row = self.table["host"][rows]
        np.subtract.at(self.hosts.rows["urls"], host_of_row, 1)
        hosts = np.unique(host_of_row)
        self.dirty.hosts(hosts)  # not only through their rows, which may serve other hosts soon
        for host in hosts[self.hosts.rows["urls"][hosts] == 0].tolist():
            self.hosts.forget(host)


@kernel(nothing(i64s, i32s, one_i64, one_f64, records(ROW), records(HOST)))
def clear(rows, hosts, sequence, at, table, host_rows):  # type: ignore[no-untyped-def]
    """Number new rows from `sequence` on; they belong to no state yet, and nothing leads to them."""
    for number in range(len(rows)):
        row = table[rows[number]]
        host_rows[hosts[number]].urls += 1
        row.sequence, row.discovered, row.host, row.state = sequence + number, at, hosts[number], FREE
        row.fetched, row.due, row.relevance, row.given = np.nan, np.nan, np.nan, np.nan
        row.priority, row.parent_sum, row.parent_best = 0.0, 0.0, 0.0
        row.newest_in, row.arm, row.max_depth, row.stamp = 0, -1, -1, -1
        row.outs, row.parents, row.status, row.tries = 0, 0, 0, 0
        row.counted, row.noted, row.reason = 0, 0, 0
        row.depth = DEEPEST


@kernel(nothing(i64s, one_i64, records(ROW), i64s, i64s))
def mark(rows, state, table, states, done):  # type: ignore[no-untyped-def]
    """Set the state of rows, and count how many are in each; `done` counts by host."""
    for row in rows:
        states[table[row].state] -= 1
        states[state] += 1
        done[table[row].host] += int(state == DONE) - int(table[row].state == DONE)
        table[row].state = state


@kernel(nothing(i64s, TABLES, i32s))
def end_lease(rows, tables, hosts):  # type: ignore[no-untyped-def]
    """Leases of these rows ended; `hosts` receives their hosts, which are not withheld any more because of them."""
    for number in range(len(rows)):
        hosts[number] = tables.rows[rows[number]].host
        host = tables.hosts[hosts[number]]
        tables.politeness[host.pace].leases -= 1
        tables.domain_pages[host.domain] -= 1
        host.withheld = -np.inf
