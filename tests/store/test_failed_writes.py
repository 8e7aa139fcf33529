"""Writes and syncs that fail: nothing is logged twice, and nobody is acknowledged by luck."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from crawlguide.core.errors import StorageFull, StoreUnavailable
from crawlguide.store.embedded import EmbeddedStore, writer
from crawlguide.store.embedded.disk import Disk
from crawlguide.store.moves.rank import Quota

from .builders import CRAWL, links
from .faults import AFTER, BEFORE, Fault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

QUOTA = Quota(urls=100_000, urls_per_host=100_000, links=100_000)
PAGES = tuple(f"https://a.org/{number}" for number in range(200))
TRIES = 20


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[EmbeddedStore]:
    store = EmbeddedStore(tmp_path, QUOTA)
    await store.crawl_put(CRAWL, b"{}", 0.0)
    await store.commit()
    yield store
    await store.close()


def log_entries(store: EmbeddedStore) -> list[int]:
    """The sizes of all entries of the journal on the disk."""
    return [len(value) for _, value in store._disk.items("log", b"")]


# writes


@pytest.mark.parametrize("when", [BEFORE, AFTER])
async def test_a_write_that_fails_again_and_again_is_logged_once(
    folder: EmbeddedStore, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = log_entries(folder)
    with monkeypatch.context() as patch:
        Fault(folder.folder, ["write"], 1, when, TRIES).arm(patch)
        await folder.discover(CRAWL, links(*PAGES), None, 1.0)
        for _ in range(TRIES):
            with pytest.raises(StorageFull):
                await folder.commit()
    await folder.commit()
    assert len(log_entries(folder)) == len(before) + 1
    assert folder._writer.log_bytes == sum(log_entries(folder))


@pytest.mark.parametrize("when", [BEFORE, AFTER])
async def test_a_sync_that_fails_again_and_again_leaves_one_entry_of_all_that_was_done(
    folder: EmbeddedStore, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await folder.discover(CRAWL, links(*PAGES), None, 1.0)
    with monkeypatch.context() as patch:
        Fault(folder.folder, ["sync"], 1, when, TRIES).arm(patch)
        for number in range(TRIES):
            await folder.discover(CRAWL, links(f"https://b.org/{number}"), None, 1.0)
            with pytest.raises(StoreUnavailable):
                await folder.commit()
    await folder.commit()
    assert sum(log_entries(folder)) < 2 * max(log_entries(folder))
    assert folder._writer.log_bytes == sum(log_entries(folder))


@pytest.mark.parametrize("method", ["write", "sync"])
@pytest.mark.parametrize("when", [BEFORE, AFTER])
async def test_what_was_written_after_failures_is_all_there_when_the_folder_is_opened_again(
    tmp_path: Path, method: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LOG_AT_LEAST", 20_000)  # snapshots in between
    store = EmbeddedStore(tmp_path, QUOTA)
    await store.crawl_put(CRAWL, b"{}", 0.0)
    await store.commit()
    for number, page in enumerate(PAGES):
        with monkeypatch.context() as patch:
            Fault(store.folder, [method], 2, when, number % 4).arm(patch)
            await store.discover(CRAWL, links(page, f"{page}/more"), None, 1.0)
            for _ in range(number % 4 + 2):
                with suppress(StorageFull, StoreUnavailable):
                    await store.commit(durable=number % 3 > 0)
    await store.commit()
    knew = store.state_hash()
    await store.close()
    again = EmbeddedStore(tmp_path, QUOTA)
    assert again.state_hash() == knew
    await again.close()


# syncs


class Held:
    """A disk whose first sync waits, and then fails; those that follow say that all is well."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.under_way, self.go_on, self.calls = threading.Event(), threading.Event(), 0
        self._real = Disk.sync
        patch.setattr(Disk, "sync", self._sync())

    def _sync(self) -> Any:
        def sync(disk: Disk) -> None:
            self.calls += 1
            if self.calls == 1:
                self.under_way.set()
                self.go_on.wait(10)
                raise StoreUnavailable("sync: Input/output error", retry_after_s=1.0)
            self._real(disk)

        return sync


async def test_who_waits_behind_a_sync_that_fails_is_not_acknowledged_either(
    folder: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        held = Held(patch)
        await folder.discover(CRAWL, links(*PAGES[:1]), None, 1.0)
        first = asyncio.create_task(folder.commit())
        await asyncio.to_thread(held.under_way.wait, 10)
        await folder.discover(CRAWL, links(*PAGES[1:2]), None, 1.0)
        second = asyncio.create_task(folder.commit())
        await asyncio.sleep(0)
        held.go_on.set()
        outcomes = await asyncio.gather(first, second, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [StoreUnavailable, StoreUnavailable]
        await folder.commit()  # writes all of it again, and syncs it
        assert held.calls == 2


async def test_a_sync_does_not_count_for_what_had_to_be_written_again_meanwhile(
    folder: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database was opened anew while the sync waited: it has synced another log than the one that was written."""
    waiting, go_on, real = threading.Event(), threading.Event(), Disk.sync

    def late(disk: Disk) -> None:
        waiting.set()
        go_on.wait(10)
        real(disk)

    with monkeypatch.context() as patch:
        patch.setattr(Disk, "sync", late)
        await folder.discover(CRAWL, links(*PAGES[:1]), None, 1.0)
        first = asyncio.create_task(folder.commit())
        await asyncio.to_thread(waiting.wait, 10)
        Fault(folder.folder, ["write"], 1).arm(patch)
        await folder.discover(CRAWL, links(*PAGES[1:2]), None, 1.0)
        with pytest.raises(StorageFull):
            await folder.commit()
        go_on.set()
        with pytest.raises(StoreUnavailable):
            await first
    await folder.commit()
    assert (await folder.stats(CRAWL))["queued"] == 2


async def test_what_nobody_waits_for_is_synced_before_it_fills_the_memory(
    folder: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "UNSYNCED_BYTES", 10_000)
    for number, page in enumerate(PAGES):
        await folder.discover(CRAWL, links(page), None, float(number))
        await folder.commit(durable=False)
        await asyncio.sleep(0.001)
    assert len(folder._writer._unsynced) < len(PAGES) / 2
