"""How changes reach the disk: one write for all that was done since the last, one sync for all who wait (group commit).

A commit puts pending keys and one journal entry with the dirty rows into RocksDB, all or nothing. What was written is
remembered until it is known to be on the disk. After an error the database is opened anew and all of that is written
again: rows as they are now, the rest as it was put. So memory is never behind the disk, the disk catches up with
memory, and only then is anything acknowledged.
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
from crawlguide.store.dirty import Tracked
from crawlguide.store.embedded import journal, keyspaces
from crawlguide.store.embedded.committer import Committer
from crawlguide.store.embedded.keyspaces import DiskKeyspace
from crawlguide.store.embedded.notebook import DiskNotebook
from crawlguide.store.embedded.snapshot import Snapshot
from crawlguide.store.tables.keyspace import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from crawlguide.core.tables import I64
    from crawlguide.store.embedded.disk import Disk, Pending
    from crawlguide.store.embedded.journal import Column
    from crawlguide.store.embedded.notebook import DiskSheet
    from crawlguide.store.frontier import Frontier
    from crawlguide.store.tables.hosts import CrawlHosts
    from crawlguide.store.tables.politeness import PolitenessQueues

LOG_AT_LEAST = 32 << 20  # bytes of journal that are not worth a snapshot
SNAPSHOT_PACE = 2  # bytes of a snapshot that are written for each byte logged while it runs
SNAPSHOT_AT_REST = 4 << 20  # and at each upkeep
UNSYNCED_BYTES = 32 << 20  # of journal that is kept to be written again; beyond, a sync does not wait for a taker
LOG_START = b"log_start"

DirtyRows = list[tuple[Tracked, "I64", "I64", "I64"]]  # of a crawl: rows, hosts, assigned rows
DirtySheets = list[tuple["DiskSheet", "I64"]]


@dataclass(frozen=True)
class Commit:
    """What one write held, kept until it is known to be on the disk."""

    number: int
    pending: Pending
    rows: DirtyRows
    queues: I64
    sheets: DirtySheets
    domains: list[tuple[CrawlHosts, set[int]]]  # forgotten
    logged: int  # bytes of journal


class Writer:
    """Everything of a folder that is to be written: by whom, when, and what happens if that fails."""

    def __init__(self, disk: Disk, politeness: PolitenessQueues, synced: Callable[[float], None]) -> None:
        """`synced` is called, in the commit thread, with the seconds each sync took."""
        self.disk, self.politeness, self._report_sync = disk, politeness, synced
        self.frontiers: dict[int, Frontier] = {}  # by the number of the crawl that owns it
        self.notebooks: dict[int, DiskNotebook] = {}
        self.folder = keyspaces.keyspace(disk, keyspaces.FOLDER, b"F")
        self.log_end = self.log_bytes = 0
        self.latest = 0.0  # the last instant of any call
        self._log = DiskKeyspace(disk, "log", b"")
        self._dirty: dict[Tracked, None] = {}
        self._dirty_sheets: dict[DiskSheet, None] = {}
        self._unsynced: deque[Commit] = deque()
        self._unsynced_bytes = 0
        self._written = self._synced = 0
        self._failure = self._mended = object()  # the last failure, and the last one after which all was written again
        self._size = 0  # of all tables, when it was last looked at
        self._snapshot = Snapshot(disk, self._tables)
        self._committer = Committer(self._sync)

    def track(self, owner: int) -> Tracked:
        return Tracked(owner, self._dirty)

    def notebook(self, owner: int) -> DiskNotebook:
        self.notebooks[owner] = DiskNotebook(owner, keyspaces.sheets(self.disk, owner), self._dirty_sheets)
        return self.notebooks[owner]

    def remove(self, owner: int) -> None:
        """A crawl was deleted: nothing of it is written any more."""
        del self.frontiers[owner]
        for dirty in [dirty for dirty in self._dirty if dirty.owner == owner]:
            del self._dirty[dirty]
        for sheet in self.notebooks.pop(owner).sheets():
            self._dirty_sheets.pop(sheet, None)
        self._snapshot.leave_out(owner)
        for keyspace in [keyspace for keyspace in self.disk.changed if keyspace.is_below(key_of(owner))]:
            keyspace.pending.clear()

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
        failure = self._failure
        if failure is not self._mended:
            self._recover()
        size = self._write_dirty() if self._is_ahead() else 0
        self._mended = failure  # only now: before what was lost is written again, no sync is worth anything
        if size:
            self._advance(size)

    def _write_dirty(self) -> int:
        """Write all that is dirty; returns how many bytes of journal that are."""
        faults.point("before_write")
        log_end, commit = self.log_end, self._collect()
        try:
            self.disk.write(commit.pending)
        except CrawlGuideError:
            self._fail()
            self._restore(commit)
            self.log_end = log_end  # the next entry takes the place of this one
            raise
        faults.point("after_write")
        self._written = commit.number
        self._unsynced.append(commit)
        self._unsynced_bytes += commit.logged
        while self._unsynced and self._unsynced[0].number <= self._synced:
            self._unsynced_bytes -= self._unsynced.popleft().logged
        if self._unsynced_bytes > UNSYNCED_BYTES:
            self._committer.sync_soon()
        return commit.logged

    @property
    def _failed(self) -> bool:
        """Something could not be written or synced, and has not been written again since."""
        return self._failure is not self._mended

    def _fail(self) -> None:
        """From either thread. Each failure is another one: mending one does not mend those that came meanwhile."""
        self._failure = object()

    def _is_ahead(self) -> bool:
        """Is there anything in memory that is not written?"""
        return bool(self._dirty or self._dirty_sheets or self.disk.changed or self.politeness.touched)

    def rest(self) -> None:
        """When there is time, and nothing in memory that is not written: bring a running snapshot on."""
        if not (self._failed or self.disk.torn or self._is_ahead()):
            self._step(SNAPSHOT_AT_REST)

    def rewrite(self, puts: Mapping[bytes, bytes]) -> None:
        """Everything anew, as it is now, instead of what was there; with these entries of the folder's own keyspace."""
        for owner, table, column, length in list(self._tables()):
            self._log_entry([journal.update(owner, table, column, np.arange(length))], [])
        self._log_entry([], [journal.counters(owner, frontier) for owner, frontier in self.frontiers.items()])
        for key, value in puts.items():
            self.folder.put(key, value)
        self.disk.write(self._take_pending(), emptied=("rows", "log"))
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

    def _collect(self) -> Commit:
        """All that is dirty, as the keyspaces and the journal will hold it; nothing is dirty from here on."""
        rows = [(dirty, *dirty.take()) for dirty in self._dirty]
        queues = np.fromiter(self.politeness.touched, np.int64)
        sheets = [(sheet, sheet.take()) for sheet in self._dirty_sheets]
        size = self._log_entry(
            self._updates(rows, queues, sheets),
            [journal.counters(dirty.owner, self.frontiers[dirty.owner]) for dirty in self._dirty],
        )
        hosts = [self.frontiers[dirty.owner].hosts for dirty in self._dirty]
        domains = [(hosts_of_crawl, hosts_of_crawl.forgotten_domains) for hosts_of_crawl in hosts]
        for hosts_of_crawl in hosts:
            hosts_of_crawl.forgotten_domains = set()
        self._dirty.clear()
        self._dirty_sheets.clear()
        self.politeness.touched.clear()
        return Commit(self._written + 1, self._take_pending(), rows, queues, sheets, domains, size)

    def _updates(self, rows: DirtyRows, queues: I64, sheets: DirtySheets) -> list[journal.Update]:
        updates: list[journal.Update] = []
        for dirty, changed, hosts, assigned in rows:
            owner, frontier = dirty.owner, self.frontiers[dirty.owner]
            if len(changed) or len(hosts) or len(queues):
                updates += journal.crawl_updates(owner, frontier, changed, hosts, queues)
            if len(assigned):
                updates.append(journal.assigned_update(owner, frontier, assigned))
            if frontier.hosts.forgotten_domains:
                updates.append(journal.forgotten_domains(owner, frontier))
        if not rows:
            updates.append(journal.update(keyspaces.FOLDER, "pace", self.politeness.rows, queues))
        return updates + [journal.update(sheet.owner, sheet.table, sheet.look(), some) for sheet, some in sheets]

    def _take_pending(self) -> Pending:
        """What was put into keyspaces and is not written."""
        pending = {keyspace: keyspace.pending for keyspace in self.disk.changed}
        for keyspace in pending:
            keyspace.pending = {}
        self.disk.changed.clear()
        return pending

    def _log_entry(self, updates: list[journal.Update], counters: list[journal.Counters]) -> int:
        entry = journal.encode(journal.Entry(self.latest, updates, counters))
        self._log.put(key_of(self.log_end, 8), entry)
        self.log_end += 1
        self.log_bytes += len(entry)
        return len(entry)

    def _restore(self, commit: Commit) -> None:
        """As if the write had not been tried. What was put since is newer and stays.

        The journal's next entry says all that this commit's entry said, so that one goes, if it got anywhere at all.
        """
        for keyspace, entries in commit.pending.items():
            again = dict.fromkeys(entries) if keyspace is self._log else entries
            keyspace.pending = {**again, **keyspace.pending}
            self.disk.changed[keyspace] = None
        self.log_bytes = max(0, self.log_bytes - commit.logged)
        for dirty, rows, hosts, assigned in commit.rows:
            if dirty.owner in self.frontiers:  # else its crawl was deleted
                dirty.rows(np.concatenate([rows, assigned]))
                dirty.hosts(hosts)
        for sheet, rows in commit.sheets:
            sheet.changed(rows)
        self.politeness.touched.update(commit.queues.tolist())
        for hosts_of_crawl, domains in commit.domains:
            hosts_of_crawl.forgotten_domains |= domains

    def _recover(self) -> None:
        """Open the database anew and write again whatever is not known to be on the disk."""
        self.disk.reopen()
        self._snapshot.abandon()
        while self._unsynced:
            commit = self._unsynced.pop()
            if commit.number > self._synced:
                self._restore(commit)
        self._unsynced_bytes = 0

    def _sync(self) -> None:
        """In the commit thread. Returning means that no write or sync has failed up to now that is not mended."""
        failure, number, began = self._failure, self._written, time.perf_counter()
        try:
            if failure is self._mended:
                self.disk.sync()
        except CrawlGuideError:
            self._fail()
            raise
        if self._failed or failure is not self._failure:  # what waits may be lost, although the disk says nothing now
            raise StoreUnavailable(f"data: {self.disk.folder} could not be written; try again", retry_after_s=1.0)
        self._synced = max(self._synced, number)
        self._report_sync(time.perf_counter() - began)
        faults.point("after_sync")

    # the snapshot

    def _tables(self) -> Iterator[tuple[int, str, Column, int]]:
        """Every table with its crawl, its name and how many of its rows are in use."""
        yield from self._row_tables()
        for sheet in self._sheets():
            yield sheet.owner, sheet.table, sheet.look(), sheet.used

    def _row_tables(self) -> Iterator[tuple[int, str, Column, int]]:
        yield keyspaces.FOLDER, "pace", self.politeness.rows, self.politeness.end
        for owner, frontier in list(self.frontiers.items()):
            yield owner, "rows", frontier.table, frontier.index.rows
            yield owner, "ids", frontier.index.ids, frontier.index.rows
            yield owner, "hosts", frontier.hosts.rows, frontier.hosts.end
            yield owner, "domains", frontier.hosts.domain_pages, len(frontier.hosts.domain_pages)

    def _sheets(self) -> Iterator[DiskSheet]:
        for notebook in list(self.notebooks.values()):
            yield from notebook.sheets()

    def _advance(self, logged: int) -> None:
        """Begin a snapshot when the journal has outgrown the tables; one that runs goes on faster than the journal."""
        if not self._snapshot.is_running and self.log_bytes > max(LOG_AT_LEAST, self._size):
            self._size = sum(column.dtype.itemsize * length for _, _, column, length in self._row_tables())
            self._size += sum(sheet.kind.itemsize * sheet.used for sheet in self._sheets())
            if self.log_bytes > self._size:
                self._snapshot.begin(self.log_end)
                self.log_bytes = 0
        self._step(SNAPSHOT_PACE * logged)

    def _step(self, budget: int) -> None:
        try:
            start = self._snapshot.step(budget)
            if start is not None:
                self._begin_journal(start)
        except CrawlGuideError:  # a snapshot can be made again; the commit that brought it on is written
            self._snapshot.abandon()
            self._fail()

    def _begin_journal(self, start: int) -> None:
        """A snapshot is on the disk: what was logged before it is no longer needed."""
        faults.point("before_snapshot_end")
        self.folder.put(LOG_START, key_of(start, 8))
        for owner, frontier in self.frontiers.items():
            keyspaces.counters(self.disk, owner).put(b"", journal.encode(journal.counters(owner, frontier)))
        self.write()
        faults.point("after_snapshot_end")
        self.disk.delete_range("log", key_of(0, 8), key_of(start, 8))
        happened("snapshot", "a snapshot is on the disk: {mib} MiB of rows; the log begins anew", mib=self._size >> 20)
