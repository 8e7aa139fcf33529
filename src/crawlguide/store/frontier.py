"""All that is known of one crawl's URLs: their rows, queues, leases and links. A row is in exactly one state."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.tables import rows_of
from crawlguide.store import columns
from crawlguide.store.columns import grown
from crawlguide.store.moves import record
from crawlguide.store.queues.waiting import Queues
from crawlguide.store.tables.hosts import CrawlHosts
from crawlguide.store.tables.index import Index
from crawlguide.store.tables.leases import Leases
from crawlguide.store.tables.links import LinkTable
from crawlguide.store.tables.rows import DROPPED, FREE, QUEUED, ROW
from crawlguide.store.tables.shelves import Texts, key_of

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I64, U64, Text
    from crawlguide.core.types import Paths
    from crawlguide.store.changes import Watch
    from crawlguide.store.moves.rank import Quota
    from crawlguide.store.tables.links import LinkRun
    from crawlguide.store.tables.pace import Pace
    from crawlguide.store.tables.shelves import Shelves


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
        columns.clear(rows, known, self.sequence, at, self.table, self.hosts.rows)
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
        record.move(rows, state, self.table, self.states)

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
        self.undrop(rows)
        self.enqueue(rows)

    def undrop(self, rows: I64) -> None:
        """Dropped rows do not count as such any more; the caller says what becomes of them."""
        for reason in self.table["reason"][rows]:
            self.dropped[self.reasons[reason]] -= 1

    def forget(self, rows: I64) -> None:
        """Unknown from now on. Leased rows must not be among them."""
        self.undrop(rows[self.table["state"][rows] == DROPPED])
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

    def postpone(self, rows: I64, due: F64) -> None:
        """Rows wait for an instant instead of their turn."""
        self.queues.postpone(rows.astype(np.int32), due)
        self.changes.rows(rows)

    def give(self, rows: I64, given: F64) -> None:
        """Priorities set by hand, NaN to lift one; whoever sets them ranks anew."""
        self.table["given"][rows] = given
        self.changes.rows(rows)
