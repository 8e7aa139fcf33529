"""The store in a folder: columns in memory answer, and every change is on disk before it is acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

import msgspec

from crawlguide.core.aside import aside
from crawlguide.core.errors import ConfigError, CrawlGuideError, StoreUnavailable
from crawlguide.core.types import Crawl, Usage
from crawlguide.store.crawls import CrawlData
from crawlguide.store.embedded import format as formats
from crawlguide.store.embedded import keyspaces, loading
from crawlguide.store.embedded.disk import Disk
from crawlguide.store.embedded.state_hash import Room, facts, needed, state_hash
from crawlguide.store.embedded.writer import LOG_START, Writer
from crawlguide.store.frontier import Frontier
from crawlguide.store.local import LocalStore
from crawlguide.store.tables.keyspace import key_of, most_answers
from crawlguide.store.tables.politeness import PolitenessQueues
from crawlguide.store.tables.sharing import ALONE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from crawlguide.store.embedded.format import Reader
    from crawlguide.store.moves.rank import Quota
    from crawlguide.store.tables.sharing import Sharing

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
        names, addresses = (keyspaces.keyspace(self._disk, keyspaces.FOLDER, name) for name in (b"Q", b"I"))
        super().__init__(quota, PolitenessQueues(names, addresses, self._shared))
        self._list = keyspaces.keyspace(self._disk, keyspaces.FOLDER, b"C")
        self._owners: dict[Crawl, int] = {}
        self._deleted: list[int] = []  # deleted crawls that are still to be wiped off the disk
        self._writer = Writer(self._disk, self.politeness, self._synced)
        self.migrated_from: int | None = None
        try:
            self._open()
        except BaseException:
            self._disk.torn = True  # whoever comes next does not take half of it for all
            self._writer.abandon()
            raise
        self.opened_s = time.monotonic() - began

    def _read_anew(self) -> None:
        """After a read that failed memory may hold half a change: forget it all, and load what was written.

        Nothing acknowledged is lost by that: it was written before it was acknowledged.
        """
        self._generation += 1
        with contextlib.suppress(CrawlGuideError):
            self._writer.abandon()
        try:
            self._start(self._disk.folder, self.quota)
        except ConfigError as problem:
            raise StoreUnavailable(problem.message, retry_after_s=1.0) from None

    @property
    def folder(self) -> Path:
        return self._disk.folder

    @property
    def latest(self) -> float:
        """The last instant of any call, here or before the last stop."""
        return self._writer.latest

    def _synced(self, took_s: float) -> None:
        self.telemetry.observe("sync_seconds", took_s)

    async def figures(self) -> Mapping[str, float]:
        disk = await asyncio.to_thread(self._disk.size)  # a disk that is slow to answer keeps nobody waiting
        return {**await super().figures(), "disk_bytes": disk, "log_bytes": self._writer.log_bytes}

    # opening

    def _open(self) -> None:
        stored = self._writer.folder.get(FORMAT)
        if stored is None:
            self._writer.folder.put(FORMAT, formats.now())
            self._writer.write()
            return
        reader = formats.reader(stored, self._disk.folder)
        for key, value in self._list.items():
            self._take_over(int.from_bytes(key, "big"), msgspec.msgpack.decode(value, type=Listed))
        self._load(reader)
        if reader.is_old:
            self._writer.rewrite({FORMAT: formats.now(), LOG_START: key_of(0, 8)})
        elif reader.version < formats.VERSION:
            self._writer.folder.put(FORMAT, formats.now())
            self._writer.write()
            self._disk.sync()
        if reader.is_old or reader.version < formats.VERSION:
            self.migrated_from = reader.version

    def _take_over(self, owner: int, listed: Listed) -> None:
        if listed.definition is None:
            self._deleted.append(owner)
        else:
            crawl = Crawl(listed.tenant, listed.name)
            self._enter(crawl, self._crawl_of(crawl, owner, listed.definition))
            self._writer.notebooks[owner].open()

    def _load(self, reader: Reader) -> None:
        frontiers = self._writer.frontiers
        sheets = [sheet for notebook in self._writer.notebooks.values() for sheet in notebook.sheets()]
        loader = loading.Loader(self._disk, reader, frontiers, {(sheet.owner, sheet.table): sheet for sheet in sheets})
        loader.read(int.from_bytes(self._writer.folder.get(LOG_START) or b"", "big"))
        self.politeness.load(loader.column(keyspaces.FOLDER, "pace"))
        for owner in frontiers:
            loading.restore_crawl(loader, owner)
        for owner, notebook in self._writer.notebooks.items():
            loading.remove_sheets(self._disk, owner, notebook.replaced())
        loading.give_back_memory()
        self._writer.latest, self._writer.log_end, self._writer.log_bytes = loader.at, loader.log_end, loader.log_bytes

    # crawls

    def new_crawl(self, crawl: Crawl, definition: bytes) -> CrawlData:
        owner = int.from_bytes(self._writer.folder.get(NEXT_OWNER) or b"\1", "big")
        self._writer.folder.put(NEXT_OWNER, key_of(owner + 1))
        return self._crawl_of(crawl, owner, definition)

    def _crawl_of(self, crawl: Crawl, owner: int, definition: bytes) -> CrawlData:
        spaces = keyspaces.of_crawl(self._disk, owner)
        frontier = Frontier(self.politeness, self.quota, spaces, self._writer.track(owner))
        self._writer.frontiers[owner] = frontier
        self._owners[crawl] = owner
        answers = keyspaces.answers(self._disk, owner, most_answers(crawl))
        reported = keyspaces.reported(self._disk, owner)
        return CrawlData(definition, frontier, answers, reported, spaces.states, self._writer.notebook(owner))

    async def crawl_put(self, crawl: Crawl, definition: bytes, at: float) -> bool:
        new = await super().crawl_put(crawl, definition, at)
        self._list.put(key_of(self._owners[crawl]), msgspec.msgpack.encode(Listed(*crawl, definition)))
        return new

    async def crawl_delete(self, crawl: Crawl) -> bool:
        if not await super().crawl_delete(crawl):
            return False
        owner = self._owners.pop(crawl)
        self._writer.remove(owner)
        self._list.put(key_of(owner), msgspec.msgpack.encode(Listed(*crawl, None)))
        self._deleted.append(owner)
        return True

    def data(self, crawl: Crawl) -> CrawlData:
        self._mend()
        return super().data(crawl)

    async def crawl_get(self, crawl: Crawl) -> bytes | None:
        self._mend()  # a crawl that could not be read is not one that is not there
        return await super().crawl_get(crawl)

    async def crawl_list(self, tenant: str) -> list[Crawl]:
        self._mend()
        return await super().crawl_list(tenant)

    async def tenants(self) -> list[str]:
        self._mend()
        return await super().tenants()

    async def crawl_turns(self, most: int) -> list[Crawl]:
        self._mend()
        return await super().crawl_turns(most)

    async def usage(self, tenant: str) -> Usage:
        self._mend()
        return await super().usage(tenant)

    async def generation(self) -> int:
        self._mend()
        return self._generation

    def _mend(self) -> None:
        if self._disk.torn:
            self._read_anew()

    # what lasts

    def before_change(self, at: float) -> None:
        self._mend()
        self._writer.check()
        self._writer.latest = max(self._writer.latest, at)

    async def commit(self, durable: bool = True) -> None:
        if self._disk.torn:
            self._read_anew()
            raise StoreUnavailable("data: a read failed, so what was under way is undone; try again", retry_after_s=1.0)
        await self._writer.commit(durable)
        while self._deleted:
            owner = self._deleted.pop()
            self._disk.delete_below(key_of(owner))
            self._list.delete(key_of(owner))

    async def forget_old(self, crawl: Crawl, at: float) -> int:
        self._writer.rest()
        return await super().forget_old(crawl, at)

    async def close(self) -> None:
        self._writer.close()
        self.crawls.clear()

    # copies

    async def backup(self, target: Path) -> str:
        """A copy of the whole folder at this moment, made while others are served; returns its state hash."""
        await asyncio.to_thread(self._disk.flush_all)  # so that the moment itself is short
        room = await aside(Room, needed(self.crawls.values()))
        self._writer.write()
        self._disk.checkpoint(target)
        return await aside(state_hash, facts(self, self._owners, room))

    def state_hash(self) -> str:
        """Equal for two stores that know the same in the same rows: for backups, restarts and tests."""
        return state_hash(facts(self, self._owners, Room()))
