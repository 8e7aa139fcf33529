"""Opening a folder: the last snapshot, the journal since, and everything that follows from the rows."""

from __future__ import annotations

import contextlib
import ctypes
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.store.embedded import journal, keyspaces
from crawlguide.store.embedded.keyspaces import FOLDER, beyond
from crawlguide.store.embedded.notebook import MARK
from crawlguide.store.embedded.snapshot import CHUNK, table_key
from crawlguide.store.tables.keyspace import key_of
from crawlguide.store.tables.rows import DONE, DROPPED, FREE, LEASED, QUEUED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.store.embedded.disk import Disk
    from crawlguide.store.embedded.format import Reader
    from crawlguide.store.embedded.journal import Column, Counters
    from crawlguide.store.embedded.notebook import DiskSheet
    from crawlguide.store.frontier import Frontier

UNPACKED_CRAWLS = 100  # whose sheets are left as they are read


@dataclass
class Loader:
    """The tables of a folder as they come off the disk, by crawl and name."""

    disk: Disk
    reader: Reader
    frontiers: dict[int, Frontier]
    sheets: dict[tuple[int, str], DiskSheet]
    columns: dict[tuple[int, str], Column] = field(default_factory=dict)
    counters: dict[int, Counters] = field(default_factory=dict)
    at: float = 0.0
    log_bytes: int = 0
    log_end: int = 0

    def read(self, log_start: int) -> None:
        """The last snapshot first, then the journal since."""
        self._read_snapshot()
        self.log_end = log_start
        for key, value in self.disk.items("log", b"", key_of(log_start, 8)):
            self._apply(journal.decode(value))
            self.log_end, self.log_bytes = int.from_bytes(key, "big") + 1, self.log_bytes + len(value)
        for sheet in self.sheets.values():
            self._pack(sheet)

    def _read_snapshot(self) -> None:
        for owner, frontier in self.frontiers.items():
            # the large ones are read into the place where they stay
            self.columns[owner, "rows"], self.columns[owner, "ids"] = frontier.table, frontier.index.ids
            counters = keyspaces.counters(self.disk, owner).get(b"")
            if counters is not None:
                self.counters[owner] = journal.decode_counters(counters)
        for owner in [*self.frontiers, FOLDER]:
            for table in journal.TABLE_KINDS:
                for first, value in self._chunks(owner, table):
                    records = self.reader.records(table, value)
                    self._put(owner, table, np.arange(first, first + len(records)), records)
        for (owner, table), sheet in self.sheets.items():
            for first, value in self._chunks(owner, table):
                sheet.put(np.arange(first, first + len(value) // sheet.kind.itemsize), value)
            self._pack(sheet)

    def _pack(self, sheet: DiskSheet) -> None:
        """Of many crawls most will not be used soon."""
        if len(self.frontiers) > UNPACKED_CRAWLS:
            sheet.pack()

    def column(self, owner: int, table: str) -> Column:
        return self.columns.setdefault((owner, table), np.zeros(0, journal.TABLE_KINDS[table]))

    def _chunks(self, owner: int, table: str) -> Iterator[tuple[int, bytes]]:
        """The chunks of a table as the last snapshot left them, each with the number of its first record."""
        prefix = table_key(owner, table)
        for key, value in self.disk.items("rows", prefix):
            yield int.from_bytes(key[len(prefix) :], "big") * CHUNK, value

    def _put(self, owner: int, table: str, rows: Column, records: Column) -> None:
        self.columns[owner, table] = journal.put(self.column(owner, table), rows, records)

    def _apply(self, entry: journal.Entry) -> None:
        self.at = max(self.at, entry.at)
        for update in entry.updates:
            if update.owner == FOLDER or update.owner in self.frontiers:  # else its crawl was deleted since
                self._apply_update(update.owner, update.table, np.frombuffer(update.rows, np.int32), update.records)
        self.counters.update({one.owner: one for one in entry.counters})

    def _apply_update(self, owner: int, table: str, rows: Column, records: bytes) -> None:
        if table.startswith(MARK):
            if (owner, table) in self.sheets:  # else another sheet has taken its place
                self.sheets[owner, table].put(rows, records)
        elif table == "given":
            self._assign(owner, rows, self.reader.records(table, records))
        else:
            self._put(owner, table, rows, self.reader.records(table, records))

    def _assign(self, owner: int, rows: Column, assigned: Column) -> None:
        """Rows were leased: a few fields of rows that are here already."""
        self.column(owner, "rows")["state"][rows] = assigned["state"]
        self.column(owner, "domains")[assigned["domain"]] = assigned["domain_pages"]
        queues = self.column(FOLDER, "pace")
        for name in ("last", "next_fetch", "leases"):
            queues[name][assigned["queue"]] = assigned[name]


def restore_crawl(loader: Loader, owner: int) -> None:
    """Everything about a crawl that follows from its rows."""
    frontier = loader.frontiers[owner]
    if owner in loader.counters:
        journal.restore_counters(frontier, loader.counters[owner])
    frontier.hosts.load(loader.column(owner, "hosts"), loader.column(owner, "domains"))
    count = _rows_in_use(frontier)
    state = frontier.table["state"][:count]
    frontier.index.load(count, np.flatnonzero(state != FREE))
    frontier.states[:] = np.bincount(state, minlength=FREE + 1)
    frontier.states[FREE] = 0
    done = frontier.table["host"][:count][state == DONE]
    frontier.hosts.done[: frontier.hosts.end] = np.bincount(done, minlength=frontier.hosts.end)
    _restore_dropped(frontier, state)
    frontier.queues.fit(len(frontier.table), len(frontier.hosts.rows))
    waits = (state == QUEUED) | ((state != FREE) & ~np.isnan(frontier.table["due"][:count]))
    frontier.queues.load(np.flatnonzero(waits).astype(np.int32))
    _restore_leases(frontier)
    withheld = frontier.hosts.rows["withheld"][: frontier.hosts.end]
    frontier.any_withheld = bool((withheld > -np.inf).any())


def _restore_dropped(frontier: Frontier, state: Column) -> None:
    reasons = Counter(frontier.table["reason"][: len(state)][state == DROPPED].tolist())
    frontier.dropped.update({frontier.reasons[number]: count for number, count in reasons.items()})


def _restore_leases(frontier: Frontier) -> None:
    frontier.leases.load(lambda row: bool(frontier.table["state"][row] == LEASED))
    strict = {row: lease.expires for row, lease in frontier.leases.by_row.items() if lease.strict}
    if strict:
        hosts = frontier.table["host"][list(strict)]
        frontier.queues.waiting.shut(hosts, np.array(list(strict.values())))


def _rows_in_use(frontier: Frontier) -> int:
    """Every row that was ever used has an id."""
    used = np.flatnonzero(frontier.index.ids)
    return int(used[-1]) + 1 if len(used) else 0


def remove_sheets(disk: Disk, owner: int, tables: list[str]) -> None:
    """Remove what a snapshot has left of sheets that were replaced."""
    for table in tables:
        prefix = table_key(owner, table)
        if next(disk.items("rows", prefix), None) is not None:
            disk.delete_range("rows", prefix, beyond(prefix))


def give_back_memory() -> None:
    """What reading took is returned to the system, where the C library can do that."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
