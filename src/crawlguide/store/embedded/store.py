"""The store in a folder. Columns answer, the disk remembers; nothing is acknowledged before it is written."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import xxhash

from crawlguide.core.errors import ConfigError, CrawlGuideError, StoreUnavailable
from crawlguide.core.types import Crawl
from crawlguide.store.crawl_data import CrawlData
from crawlguide.store.embedded import format as formats
from crawlguide.store.embedded import journal, keys, loading
from crawlguide.store.embedded.disk import Disk
from crawlguide.store.embedded.ledger import LOG_START, Ledger
from crawlguide.store.frontier import Frontier
from crawlguide.store.local import LocalStore
from crawlguide.store.tables.pace import Pace
from crawlguide.store.tables.politeness_queues import ALONE
from crawlguide.store.tables.rows import FREE
from crawlguide.store.tables.shelves import key_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from crawlguide.core.tables import I64
    from crawlguide.store.embedded.format import Reader
    from crawlguide.store.moves.rank import Quota
    from crawlguide.store.tables.politeness_queues import Sharing

FORMAT, NEXT_OWNER = b"format", b"next_owner"


class Listed(msgspec.Struct, array_like=True):
    """A crawl in the folder's list; without a definition it is being deleted."""

    tenant: str
    name: str
    definition: bytes | None


class EmbeddedStore(LocalStore):
    """Every change is in RocksDB's log when `commit` returns, and on the disk if it was to be durable."""

    _generation = 0  # how often all had to be read anew

    def __init__(self, folder: Path, quota: Quota, shared: Sharing = ALONE) -> None:
        self._shared = shared
        self._start(folder, quota)

    def _start(self, folder: Path, quota: Quota) -> None:
        began = time.monotonic()
        self._disk = Disk(folder)
        queues, found = (keys.shelf(self._disk, keys.FOLDER, name) for name in (b"Q", b"I"))
        super().__init__(quota, Pace(queues, found, self._shared))
        self._list = keys.shelf(self._disk, keys.FOLDER, b"C")
        self._owners: dict[Crawl, int] = {}
        self._doomed: list[int] = []  # deleted crawls that are still to be wiped off the disk
        self._ledger = Ledger(self._disk, self._pace, self._synced)
        self.migrated_from: int | None = None
        try:
            self._open()
        except BaseException:
            self._disk.torn = True  # whoever comes next does not take half of it for all
            self._ledger.abandon()
            raise
        self.opened_s = time.monotonic() - began

    def _read_anew(self) -> None:
        """After a read that failed memory may hold half a change: forget it all, and load what was written.

        Nothing acknowledged is lost by that: it was written before it was acknowledged.
        """
        self._generation += 1
        with contextlib.suppress(CrawlGuideError):
            self._ledger.abandon()
        try:
            self._start(self._disk.folder, self._quota)
        except ConfigError as problem:
            raise StoreUnavailable(problem.message, retry_after_s=1.0) from None

    @property
    def folder(self) -> Path:
        return self._disk.folder

    @property
    def latest(self) -> float:
        """The last instant anybody spoke of, here or before the last stop."""
        return self._ledger.latest

    def _synced(self, took_s: float) -> None:
        self.telemetry.observe("sync_seconds", took_s)

    async def figures(self) -> Mapping[str, float]:
        disk = await asyncio.to_thread(self._disk.size)  # a disk that is slow to answer keeps nobody waiting
        return {**await super().figures(), "disk_bytes": disk, "log_bytes": self._ledger.log_bytes}

    # opening

    def _open(self) -> None:
        kept = self._ledger.folder.get(FORMAT)
        if kept is None:
            self._ledger.folder.put(FORMAT, formats.now())
            self._ledger.write()
            return
        reader = formats.reader(kept, self._disk.folder)
        for key, value in self._list.items():
            self._take_over(int.from_bytes(key, "big"), msgspec.msgpack.decode(value, type=Listed))
        self._load(reader)
        if reader.is_old:
            self._ledger.rewrite({FORMAT: formats.now(), LOG_START: key_of(0, 8)})
        elif reader.version < formats.VERSION:
            self._ledger.folder.put(FORMAT, formats.now())
            self._ledger.write()
            self._disk.sync()
        if reader.is_old or reader.version < formats.VERSION:
            self.migrated_from = reader.version

    def _take_over(self, owner: int, listed: Listed) -> None:
        if listed.definition is None:
            self._doomed.append(owner)
        else:
            crawl = Crawl(listed.tenant, listed.name)
            self._books[crawl] = self._book_of(crawl, owner, listed.definition)
            self._ledger.notebooks[owner].open()

    def _load(self, reader: Reader) -> None:
        frontiers = {owner: frontier for owner, (frontier, _) in self._ledger.frontiers.items()}
        sheets = [sheet for notebook in self._ledger.notebooks.values() for sheet in notebook.kept()]
        loaded = loading.Loaded(self._disk, reader, frontiers, {(sheet.owner, sheet.table): sheet for sheet in sheets})
        for owner in frontiers:
            kept = keys.shelf(self._disk, owner, b"c").get(b"")
            if kept is not None:
                loaded.counters[owner] = journal.decode_counters(kept)
        loaded.read(int.from_bytes(self._ledger.folder.get(LOG_START) or b"", "big"))
        self._pace.load(loaded.column(keys.FOLDER, "pace"))
        for owner in frontiers:
            loading.restore_crawl(loaded, owner)
        for owner, notebook in self._ledger.notebooks.items():
            loading.sweep(self._disk, owner, notebook.replaced())
        loading.give_back_memory()
        self._ledger.latest, self._ledger.log_end, self._ledger.log_bytes = loaded.at, loaded.log_end, loaded.log_bytes

    # crawls

    def _new_book(self, crawl: Crawl, definition: bytes) -> CrawlData:
        owner = int.from_bytes(self._ledger.folder.get(NEXT_OWNER) or b"\1", "big")
        self._ledger.folder.put(NEXT_OWNER, key_of(owner + 1))
        return self._book_of(crawl, owner, definition)

    def _book_of(self, crawl: Crawl, owner: int, definition: bytes) -> CrawlData:
        shelves, changes = keys.shelves(self._disk, owner), self._ledger.watch()
        frontier = Frontier(self._pace, self._quota, shelves, changes)
        self._ledger.add(owner, frontier, changes)
        self._owners[crawl] = owner
        answers, told = keys.answers(self._disk, owner), keys.told(self._disk, owner)
        return CrawlData(definition, frontier, answers, told, shelves.states, self._ledger.notebook(owner))

    async def crawl_put(self, crawl: Crawl, definition: bytes, at: float) -> bool:
        self._changing(at)
        new = await super().crawl_put(crawl, definition, at)
        self._list.put(key_of(self._owners[crawl]), msgspec.msgpack.encode(Listed(*crawl, definition)))
        return new

    async def crawl_delete(self, crawl: Crawl) -> bool:
        self._changing(0.0)
        if not await super().crawl_delete(crawl):
            return False
        owner = self._owners.pop(crawl)
        self._ledger.remove(owner)
        self._list.put(key_of(owner), msgspec.msgpack.encode(Listed(*crawl, None)))
        self._doomed.append(owner)
        return True

    def _book(self, crawl: Crawl) -> CrawlData:
        self._mend()
        return super()._book(crawl)

    async def crawl_get(self, crawl: Crawl) -> bytes | None:
        self._mend()  # a crawl that could not be read is not one that is not there
        return await super().crawl_get(crawl)

    async def crawl_list(self, tenant: str) -> list[Crawl]:
        self._mend()
        return await super().crawl_list(tenant)

    async def generation(self) -> int:
        self._mend()
        return self._generation

    def _mend(self) -> None:
        if self._disk.torn:
            self._read_anew()

    # what lasts

    def _changing(self, at: float) -> None:
        self._mend()
        self._ledger.check()
        self._ledger.latest = max(self._ledger.latest, at)

    async def count(self, crawl: Crawl, numbers: Mapping[str, int]) -> None:
        await super().count(crawl, numbers)
        self._frontier(crawl).changes.counters()

    async def commit(self, durable: bool = True) -> None:
        if self._disk.torn:
            self._read_anew()
            raise StoreUnavailable("data: a read failed, so what was under way is undone; try again", retry_after_s=1.0)
        await self._ledger.commit(durable)
        while self._doomed:
            owner = self._doomed.pop()
            self._disk.delete_below(key_of(owner))
            self._list.delete(key_of(owner))

    async def forget_old(self, crawl: Crawl, at: float) -> int:
        self._ledger.rest()
        return await super().forget_old(crawl, at)

    async def close(self) -> None:
        self._ledger.close()
        self._books.clear()

    # copies

    async def backup(self, target: Path) -> str:
        """A copy of the whole folder at this moment, made while others are served; returns its state hash."""
        await asyncio.to_thread(self._disk.flush_all)  # so that the moment itself is short
        self._ledger.write()
        self._disk.checkpoint(target)
        return self.state_hash()

    def state_hash(self) -> str:
        """Equal for two stores that know the same in the same rows: for backups, restarts and tests.

        Behind a dash follows what was learned: a strategy that does not say what it changed harms that part alone.
        """
        digest, learned = xxhash.xxh3_128(), xxhash.xxh3_64()
        for crawl, owner in sorted(self._owners.items()):
            frontier, _ = self._ledger.frontiers[owner]
            digest.update(repr(crawl).encode() + self._books[crawl].definition)
            counters = journal.counters(owner, frontier)
            counters.counts = dict(sorted((+frontier.counts).items()))  # a zero says nothing, written down or not
            digest.update(journal.encode(counters))
            live = np.flatnonzero(frontier.table["state"][: frontier.index.rows] != FREE)
            digest.update(_facts(frontier.table, live) + frontier.index.ids[live].tobytes())
            digest.update(_facts(frontier.hosts.rows, frontier.hosts.numbers()))
            for name, sheet in self._books[crawl].notebook.in_use().items():
                learned.update(repr((crawl, name, sheet.used)).encode() + formats.layout(sheet.rows.dtype).encode())
                learned.update(_facts(sheet.rows, np.arange(sheet.used)))
            digest.update(repr(sorted((row, lease.expires) for row, lease in frontier.leases.by_row.items())).encode())
        digest.update(_facts(self._pace.rows, self._pace.numbers()))
        return f"{digest.hexdigest()}-{learned.hexdigest()}"


def _facts(table: journal.Column, rows: I64 | list[int]) -> bytes:
    """Field by field: behind the last field of a record lies whatever memory held there."""
    if table.dtype.names is None:
        return table[rows].tobytes()
    return b"".join(table[name][rows].tobytes() for name in table.dtype.names)
