"""A disk whose nth call fails, and what must hold of the files whenever that happens."""

from __future__ import annotations

import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawlguide.core.errors import CrawlGuideError, StorageFull, StoreUnavailable
from crawlguide.store.embedded import EmbeddedStore
from crawlguide.store.embedded.disk import Disk

from . import files
from .builders import ids
from .crawling import MAIN, WEB

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterator

    import pytest

    from crawlguide.store.moves.rank import Quota

WRITES = ("write", "write_unlogged", "sync", "flush", "delete_range", "checkpoint")
READS = ("get", "get_many", "items")
BEFORE, AFTER = "before", "after"


@dataclass
class Fault:
    """Calls number `number`, … of some methods fail, before they did anything, or after they did all of it."""

    folder: Path
    methods: Collection[str]
    number: int
    when: str = BEFORE
    times: int = 1
    calls: int = field(default=0, init=False)
    struck: str = field(default="", init=False)  # which method it was in the end

    def arm(self, patch: pytest.MonkeyPatch) -> None:
        for name in self.methods:
            patch.setattr(Disk, name, self._failing(name, getattr(Disk, name)))

    def _failing(self, name: str, real: Any) -> Any:
        def call(disk: Disk, *arguments: Any, **more: Any) -> Any:
            problem = self._next(name, disk)
            if problem and self.when == BEFORE:
                raise problem
            answer = real(disk, *arguments, **more)
            if problem:
                raise problem
            return answer

        def iterate(disk: Disk, *arguments: Any) -> Iterator[Any]:
            problem = self._next(name, disk)
            for number, item in enumerate(real(disk, *arguments)):
                if problem and number == (self.when == AFTER):
                    raise problem
                yield item

        return iterate if name == "items" else call

    def _next(self, name: str, disk: Disk) -> CrawlGuideError | None:
        """The error that this call ends with, if it is its turn. Copies of the folder are left alone."""
        if disk.folder != self.folder:
            return None
        self.calls += 1
        if not self.number <= self.calls < self.number + self.times:
            return None
        self.struck = name
        if name in {*READS, "sync"}:
            return StoreUnavailable(f"{name}: Input/output error", retry_after_s=1.0)
        return StorageFull(f"{name}: No space left on device", retry_after_s=5.0)


@asynccontextmanager
async def after_a_crash(folder: Path, quota: Quota, store: EmbeddedStore | None = None) -> AsyncIterator[EmbeddedStore]:
    """A store over a copy of the files as they are now; `store` is whoever has the folder open."""
    with tempfile.TemporaryDirectory(dir=folder.parent, ignore_cleanup_errors=True) as other:
        found = EmbeddedStore(files.copy(folder, Path(other) / "copy", store), quota)
        try:
            yield found
        finally:
            await found.close()


async def check_states(store: EmbeddedStore, acked: Collection[str]) -> None:
    """Everything acknowledged is there, once; every URL is itself, and in one state; the states add up."""
    if await store.crawl_get(MAIN) is None:
        assert not acked
        return
    stats = await store.stats(MAIN)
    records = (await store.scan(MAIN, None, None, 10_000, None))[0]
    found = [record.url for record in records]
    assert len(found) == len(set(found))
    assert stats["queued"] + stats["leased"] + stats["done"] + sum(stats["dropped"].values()) == len(found)
    assert {record.url for record in records if record.state == "done"} >= set(acked)
    assert stats["fetches"] >= len(acked)
    again = await store.find(MAIN, ids(*WEB))
    assert [record.url for record in again if record] == [url for url in WEB if url in found]
