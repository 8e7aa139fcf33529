"""How changes reach the disk: one write for all that was done since the last, one sync for all who wait.

What was written stays at hand until it is known to be on the disk. After an error the database is opened anew and all
of that is written again: rows as they are now, the rest as it was put. So memory is never behind the disk, the disk
catches up with memory, and only then is anything acknowledged.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import faults
from crawlguide.core.errors import CrawlGuideError, StoreUnavailable
from crawlguide.core.telemetry import happened
from crawlguide.store.changes import Changes
from crawlguide.store.embedded import journal, keys
from crawlguide.store.embedded.committer import Committer
from crawlguide.store.embedded.notebook import KeptNotebook
from crawlguide.store.embedded.snapshot import Snapshot
from crawlguide.store.tables.shelves import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from crawlguide.core.tables import I64
    from crawlguide.store.embedded.disk import Disk
    from crawlguide.store.embedded.journal import Column
    from crawlguide.store.embedded.notebook import KeptSheet
    from crawlguide.store.embedded.shelf import DiskShelf
    from crawlguide.store.frontier import Frontier
    from crawlguide.store.tables.hosts import CrawlHosts
    from crawlguide.store.tables.pace import Pace

LOG_AT_LEAST = 32 << 20  # bytes of log that are not worth a snapshot
SNAPSHOT_PACE = 2  # bytes of a snapshot that are written for each byte logged while it runs
SNAPSHOT_AT_REST = 4 << 20  # and at each upkeep
LOG_START = b"log_start"


@dataclass(frozen=True)
class Commit:
    """What one write held, kept until it is known to be on the disk."""

    number: int
    shelves: Mapping[DiskShelf, Mapping[bytes, bytes | None]]
    rows: list[tuple[Changes, I64, I64, I64]]
    queues: I64
    sheets: list[tuple[KeptSheet, I64]]
    domains: list[tuple[CrawlHosts, set[int]]]


class Ledger:
    def __init__(self, disk: Disk, pace: Pace, synced: Callable[[float], None] = lambda _: None) -> None:
        """`synced` is told, in the commit thread, what each sync took."""
        self.disk, self.pace, self._took = disk, pace, synced
        self.frontiers: dict[int, tuple[Frontier, Changes]] = {}
        self.notebooks: dict[int, KeptNotebook] = {}
        self.folder = keys.shelf(disk, keys.FOLDER, b"F")
        self.log_end = self.log_bytes = 0
        self.latest = 0.0  # the last instant anybody spoke of
        self._log = disk.shelf("log", b"")
        self._dirty: dict[Changes, None] = {}
        self._sheets: dict[KeptSheet, None] = {}  # those with something to write
        self._owner_of: dict[Changes, int] = {}
        self._unsynced: deque[Commit] = deque()
        self._written = self._synced = 0
        self._failed = False
        self._size = 0  # of all tables, when it was last looked at
        self._snapshot = Snapshot(disk, self._tables)
        self._committer = Committer(self._sync)

    def watch(self) -> Changes:
        return Changes(self._dirty)

    def notebook(self, owner: int) -> KeptNotebook:
        self.notebooks[owner] = KeptNotebook(owner, keys.sheets(self.disk, owner), self._sheets)
        return self.notebooks[owner]

    def add(self, owner: int, frontier: Frontier, changes: Changes) -> None:
        self.frontiers[owner] = (frontier, changes)
        self._owner_of[changes] = owner

    def remove(self, owner: int) -> None:
        """A crawl was deleted: nothing of it is written any more."""
        _, changes = self.frontiers.pop(owner)
        del self._owner_of[changes]
        self._dirty.pop(changes, None)
        for sheet in self.notebooks.pop(owner).kept():
            self._sheets.pop(sheet, None)
        self._snapshot.abandon()
        for shelf in [shelf for shelf in self.disk.changed if shelf.is_below(key_of(owner))]:
            shelf.pending.clear()

    def check(self) -> None:
        """Before anything is changed: after a failure nothing more is done before what was done is written."""
        if self._failed:
            self.write()

    async def commit(self, durable: bool) -> None:
        self.write()
        if durable and self._synced < self._written:
            await self._committer.synced()

    def write(self) -> None:
        """Hand all that was done to the operating system, whole."""
        if self.disk.torn:
            raise StoreUnavailable(f"data: {self.disk.folder} could not be read; try again", retry_after_s=1.0)
        if self._failed:
            self._recover()
        if not self._is_ahead():
            return
        faults.point("before_write")
        commit, size = self._collect()
        try:
            self.disk.write(commit.shelves)
        except CrawlGuideError:
            self._failed = True
            self._restore(commit)
            raise
        faults.point("after_write")
        self._written = commit.number
        self._unsynced.append(commit)
        while self._unsynced and self._unsynced[0].number <= self._synced:
            self._unsynced.popleft()
        self._advance(size)

    def _is_ahead(self) -> bool:
        """Is there anything in memory that is not written?"""
        return bool(self._dirty or self._sheets or self.disk.changed or self.pace.touched)

    def rest(self) -> None:
        """When there is time, and nothing in memory that is not written: bring a running snapshot on."""
        if not (self._failed or self.disk.torn or self._is_ahead()):
            self._step(SNAPSHOT_AT_REST)

    def rewrite(self, puts: Mapping[bytes, bytes]) -> None:
        """Everything anew, as it is now, instead of what was there; with these entries of the folder's own shelf."""
        for owner, table, column, length in list(self._tables()):
            self._log_entry([journal.piece(owner, table, column, np.arange(length))], [])
        self._log_entry([], [journal.counters(owner, frontier) for owner, (frontier, _) in self.frontiers.items()])
        for key, value in puts.items():
            self.folder.put(key, value)
        self.disk.write({shelf: shelf.pending for shelf in self.disk.changed}, emptied=("rows", "log"))
        for shelf in self.disk.changed:
            shelf.pending = {}
        self.disk.changed.clear()
        self.disk.sync()

    def close(self) -> None:
        try:
            if not self.disk.torn:
                self.write()
            self.disk.sync()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the folder as it is."""
        self._committer.close()
        self._snapshot.join()
        self.disk.close()

    # writing

    def _collect(self) -> tuple[Commit, int]:
        """Everything that changed, as the shelves and the log will hold it; nothing has changed from here on."""
        taken = [(changes, *changes.take()) for changes in self._dirty]
        touched, pieces, counters = np.fromiter(self.pace.touched, np.int64), [], []
        for changes, rows, hosts, given in taken:
            owner = self._owner_of[changes]
            frontier = self.frontiers[owner][0]
            if len(rows) or len(hosts) or len(touched):
                pieces += journal.crawl_pieces(owner, frontier, rows, hosts, touched)
            if len(given):
                pieces.append(journal.given_piece(owner, frontier, given))
            if frontier.hosts.forgotten_domains:
                pieces.append(journal.forgotten_domains(owner, frontier))
            counters.append(journal.counters(owner, frontier))
        if not taken:
            pieces.append(journal.piece(keys.FOLDER, "pace", self.pace.rows, touched))
        sheets = [(sheet, sheet.take()) for sheet in self._sheets]
        pieces += [journal.piece(sheet.owner, sheet.table, sheet.rows, rows) for sheet, rows in sheets]
        size = self._log_entry(pieces, counters)
        shelves = {shelf: shelf.pending for shelf in self.disk.changed}
        for shelf in shelves:
            shelf.pending = {}
        self._dirty.clear()
        self._sheets.clear()
        self.disk.changed.clear()
        self.pace.touched.clear()
        known = [self.frontiers[self._owner_of[changes]][0].hosts for changes, *_ in taken]
        domains = [(its_hosts, its_hosts.forgotten_domains) for its_hosts in known]
        for its_hosts in known:
            its_hosts.forgotten_domains = set()
        return Commit(self._written + 1, shelves, taken, touched, sheets, domains), size

    def _log_entry(self, pieces: list[journal.Piece], counters: list[journal.Counters]) -> int:
        entry = journal.encode(journal.Entry(self.latest, pieces, counters))
        self._log.put(key_of(self.log_end, 8), entry)
        self.log_end += 1
        self.log_bytes += len(entry)
        return len(entry)

    def _restore(self, commit: Commit) -> None:
        """As if the write had not been tried. What was put since is newer and stays."""
        for shelf, entries in commit.shelves.items():
            shelf.pending = {**entries, **shelf.pending}
            self.disk.changed[shelf] = None
        for changes, rows, hosts, given in commit.rows:
            if changes in self._owner_of:
                changes.rows(np.concatenate([rows, given]))
                changes.hosts(hosts)
        for sheet, rows in commit.sheets:
            sheet.changed(rows)
        self.pace.touched.update(commit.queues.tolist())
        for hosts_of_crawl, domains in commit.domains:
            hosts_of_crawl.forgotten_domains |= domains

    def _recover(self) -> None:
        """Open the database anew and write again whatever is not known to be on the disk."""
        self.disk.reopen()
        self._snapshot.abandon()
        while self._unsynced:
            self._restore(self._unsynced.pop())
        self._failed = False

    def _sync(self) -> None:
        """In the commit thread."""
        number, began = self._written, time.perf_counter()
        try:
            self.disk.sync()
        except CrawlGuideError:
            self._failed = True
            raise
        self._synced = max(self._synced, number)
        self._took(time.perf_counter() - began)
        faults.point("after_sync")

    # the snapshot

    def _tables(self) -> Iterator[tuple[int, str, Column, int]]:
        """Every table with its crawl, its name and how many of its rows are in use."""
        yield keys.FOLDER, "pace", self.pace.rows, self.pace.end
        for owner, (frontier, _) in list(self.frontiers.items()):
            yield owner, "rows", frontier.table, frontier.index.rows
            yield owner, "ids", frontier.index.ids, frontier.index.rows
            yield owner, "hosts", frontier.hosts.rows, frontier.hosts.end
            yield owner, "domains", frontier.hosts.domain_pages, len(frontier.hosts.domain_pages)
        for owner, notebook in list(self.notebooks.items()):
            for sheet in notebook.kept():
                yield owner, sheet.table, sheet.rows, sheet.used

    def _advance(self, logged: int) -> None:
        """Begin a snapshot when the log has outgrown the tables; bring one that runs on, faster than the log grows."""
        if not self._snapshot.is_running and self.log_bytes > max(LOG_AT_LEAST, self._size):
            self._size = sum(column.dtype.itemsize * length for _, _, column, length in self._tables())
            if self.log_bytes > self._size:
                self._snapshot.begin(self.log_end)
                self.log_bytes = 0
        self._step(SNAPSHOT_PACE * logged)

    def _step(self, budget: int) -> None:
        try:
            start = self._snapshot.step(budget)
            if start is not None:
                self._begin_log(start)
        except CrawlGuideError:  # a snapshot can be made again; the commit that brought it on is written
            self._snapshot.abandon()
            self._failed = True

    def _begin_log(self, start: int) -> None:
        """A snapshot is on the disk: what was logged before it is no longer needed."""
        faults.point("before_snapshot_end")
        self.folder.put(LOG_START, key_of(start, 8))
        for owner, (frontier, _) in self.frontiers.items():
            keys.shelf(self.disk, owner, b"c").put(b"", journal.encode(journal.counters(owner, frontier)))
        self.write()
        faults.point("after_snapshot_end")
        self.disk.delete_range("log", key_of(0, 8), key_of(start, 8))
        happened("snapshot", "a snapshot is on the disk: {mib} MiB of rows; the log begins anew", mib=self._size >> 20)
