"""What a store in a folder must not lose between two moments: each test is a story that once ended badly."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from crawlguide.core.errors import CrawlGuideError, NotFound, StorageFull
from crawlguide.store.embedded import EmbeddedStore, disk, writer
from crawlguide.store.moves import forget
from crawlguide.store.moves.rank import Quota
from crawlguide.store.tables.keyspace import key_of

from . import files
from .builders import CRAWL, fetches, ids, links
from .plain import known

if TYPE_CHECKING:
    from pathlib import Path


QUOTA = Quota(urls=10_000, urls_per_host=10_000, links=10_000)
OTHER, SHORT_LIVED = CRAWL._replace(name="other"), CRAWL._replace(name="short-lived")
MANY = [f"https://h{number % 7}.org/{number}" for number in range(1_500)]
A, B, X = "https://a.org/1", "https://b.org/1", "https://x.org/1"


async def begun(folder: Path, *urls: str) -> EmbeddedStore:
    store = EmbeddedStore(folder, QUOTA)
    for crawl in (CRAWL, OTHER):
        await store.crawl_put(crawl, b"{}", 0.0)
    await store.discover(CRAWL, links(*urls), None, 0.0)
    await store.commit()
    return store


async def told(store: EmbeddedStore, number: int) -> None:
    await store.record(CRAWL, fetches(MANY[number]), 10.0 + number, 3)
    await store.commit()


async def reopened(store: EmbeddedStore) -> EmbeddedStore:
    before, folder = store.state_hash(), store.folder
    await store.close()
    store = EmbeddedStore(folder, QUOTA)
    assert store.state_hash() == before
    return store


# snapshots


async def test_snapshots_of_tables_of_many_pieces_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "LOG_AT_LEAST", 1_000)
    monkeypatch.setattr(writer, "SNAPSHOT_PACE", 8)
    store = await begun(tmp_path / "data", *MANY)
    started: set[bytes | None] = set()
    for number in range(0, len(MANY), 2):
        await told(store, number)
        started.add(store._writer.folder.get(writer.LOG_START))
    assert len(started) > 2  # several came to their end
    wanted = await known(store, CRAWL, ids(*MANY))
    crashed = EmbeddedStore(files.copy(store.folder, tmp_path / "copy", store), QUOTA)
    assert await known(crashed, CRAWL, ids(*MANY)) == wanted
    await crashed.close()
    await (await reopened(store)).close()


async def test_a_snapshot_is_not_ended_by_the_flush_of_one_that_was_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one may begin while the first is still being flushed."""
    monkeypatch.setattr(writer, "LOG_AT_LEAST", 500)
    monkeypatch.setattr(writer, "SNAPSHOT_PACE", 3)
    store, go, number = await begun(tmp_path, *MANY), threading.Event(), 0
    flush, snapshot, flushing = store._disk.flush, store._writer._snapshot, threading.Event()

    def held_up(family: str) -> None:
        flushing.set()
        go.wait()
        flush(family)

    monkeypatch.setattr(store._disk, "flush", held_up)
    while not flushing.is_set():
        await told(store, number)
        number += 1
    first = [thread for thread in threading.enumerate() if thread.name == "crawlguide-snapshot"]
    snapshot.abandon()
    while not snapshot.is_running:
        await told(store, number)
        number += 1
    go.set()
    for thread in first:
        thread.join()
    await told(store, number)
    store = await reopened(store)
    assert (await store.stats(CRAWL))["done"] == number + 1
    await store.close()


async def test_a_snapshot_ends_although_crawls_are_deleted_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LOG_AT_LEAST", 1_000)
    store, number = await begun(tmp_path, *MANY), 0
    while store._writer.folder.get(writer.LOG_START) is None:
        assert number < len(MANY), "no snapshot came to its end"
        await told(store, number)
        await store.crawl_put(SHORT_LIVED, b"{}", 5_000.0)
        await store.discover(SHORT_LIVED, links(*MANY[:5]), None, 5_000.0)
        await store.commit()
        await store.crawl_delete(SHORT_LIVED)
        number += 1
    await store.close()


async def test_a_snapshot_leaves_nothing_of_a_crawl_that_was_deleted_while_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LOG_AT_LEAST", 1_000)
    store, number = await begun(tmp_path, *MANY), 0
    await store.discover(OTHER, links(*MANY), None, 5_000.0)
    await store.commit()
    owner = store._owners[OTHER]
    monkeypatch.setattr(writer, "SNAPSHOT_PACE", 0)
    while not store._writer._snapshot.is_running:
        await told(store, number)
        number += 1
    await store.crawl_delete(OTHER)
    await store.commit()
    monkeypatch.setattr(writer, "SNAPSHOT_PACE", 8)
    while store._writer.folder.get(writer.LOG_START) is None:
        await told(store, number)
        number += 1
    assert not list(store._disk.items("rows", key_of(owner)))
    await store.close()


async def test_a_snapshot_does_not_keep_what_was_never_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upkeep brings a snapshot on, in the midst of things that are not written yet."""
    monkeypatch.setattr(writer, "LOG_AT_LEAST", 1_000)
    store, number = await begun(tmp_path / "data", *MANY), 0
    while store._writer.folder.get(writer.LOG_START) is None:
        await told(store, number)
        number += 1
    monkeypatch.setattr(writer, "SNAPSHOT_PACE", 0)
    while not store._writer._snapshot.is_running:
        await told(store, 0)
    wanted = await known(store, CRAWL, ids(*MANY, X))
    await store.discover(CRAWL, links(X), None, 5_000.0)
    await store.forget_old(CRAWL, 5_000.0)
    crashed = EmbeddedStore(files.copy(store.folder, tmp_path / "copy", store), QUOTA)
    assert await known(crashed, CRAWL, ids(*MANY, X)) == wanted
    await crashed.close()
    await store.close()


# hosts, domains and queues that come and go


async def test_a_new_domain_does_not_inherit_the_pages_of_a_forgotten_one(tmp_path: Path) -> None:
    store = await begun(tmp_path, A, B, X)
    await store.record(CRAWL, fetches(B), 1.0, 3)
    await store.commit()
    await store.purge(CRAWL, None, "b.org")
    await store.commit()
    store = await reopened(store)
    await store.discover(CRAWL, links("https://new.org/"), None, 2.0)
    assert (await store.look(CRAWL, ids("https://new.org/"))).hosts.domain_pages.tolist() == [0.0]
    await store.close()


async def test_a_host_whose_row_serves_another_is_forgotten_on_disk_too(tmp_path: Path) -> None:
    store = await begun(tmp_path, A, B, X)
    await store.purge(CRAWL, None, "b.org")
    await store.discover(CRAWL, links("https://new.org/"), None, 2.0)
    store = await reopened(store)  # the hash speaks of queues and how many crawls know them
    await store.purge(CRAWL, None, None)
    await store.forget_old(CRAWL, 1e6)
    assert len(store.politeness) == 0
    await store.close()


async def test_a_host_that_lost_a_url_knows_it_after_a_restart(tmp_path: Path) -> None:
    second = "https://a.org/2"
    store = await begun(tmp_path, A, second, X)
    await store.drop(CRAWL, ids(A), "test")
    await store.commit()
    await store.purge(CRAWL, "dropped", "a.org")
    await store.discover(CRAWL, links("https://new.org/"), None, 2.0)  # in the row that is free now
    store = await reopened(store)
    await store.purge(CRAWL, None, "a.org")
    assert (await store.stats(CRAWL))["hosts"] == 2
    await store.close()


# others at the same time


async def test_a_crawl_may_be_deleted_while_it_is_purged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forget, "PURGED_AT_ONCE", 2)
    store = await begun(tmp_path, *MANY[:10])
    purging = asyncio.create_task(store.purge(CRAWL, None, None))
    await asyncio.sleep(0)
    await store.crawl_delete(CRAWL)
    assert await _outcome(purging) in {2, "NotFound"}
    await store.discover(OTHER, links(A), None, 1.0)
    await store.commit()
    store = await reopened(store)
    assert (await store.stats(OTHER))["queued"] == 1
    with pytest.raises(NotFound):
        await store.stats(CRAWL)
    await store.forget_old(OTHER, 1e6)
    assert len(store.politeness) == 1  # the queue of a.org; nobody knows the others
    await store.close()


async def _outcome(task: asyncio.Task[int]) -> int | str:
    try:
        return await task
    except CrawlGuideError as problem:
        return type(problem).__name__


async def test_whoever_waits_for_a_commit_is_told_when_the_store_closes(tmp_path: Path) -> None:
    store = await begun(tmp_path, A)
    waiting = []
    for number in range(20):
        await store.discover(CRAWL, links(MANY[number]), None, 1.0)
        waiting.append(asyncio.create_task(store.commit()))
        await asyncio.sleep(0)
    await store.close()
    done, left = await asyncio.wait(waiting, timeout=5.0)
    for task in left:
        task.cancel()
    assert (len(done), len(left)) == (20, 0)


# a disk that fails more than once


async def test_a_database_that_cannot_be_opened_anew_at_once_is_opened_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await begun(tmp_path, A)
    real, refused = disk.Rdict, 0  # type: ignore[attr-defined]

    def refusing(*arguments: Any, **more: Any) -> Any:
        nonlocal refused
        refused += 1
        if refused <= 3:
            raise OSError("IO error: No space left on device: While open a file for appending")
        return real(*arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(store._disk, "write", _full)
        await store.discover(CRAWL, links(B), None, 1.0)
        with pytest.raises(StorageFull):
            await store.commit()
    monkeypatch.setattr(disk, "Rdict", refusing)
    for _ in range(3):
        with pytest.raises(CrawlGuideError):
            await store.discover(CRAWL, links(X), None, 2.0)
    await store.discover(CRAWL, links(X), None, 2.0)
    await store.commit()
    store = await reopened(store)
    assert [record.url for record in await store.find(CRAWL, ids(A, B, X)) if record] == [A, B, X]
    await store.close()


async def test_readers_find_their_way_back_when_a_database_could_not_be_opened_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tell reads before it writes, so a reader must be able to mend what a writer could not."""
    store = await begun(tmp_path, A)
    with monkeypatch.context() as patch:
        patch.setattr(store._disk, "write", _full)
        await store.discover(CRAWL, links(B), None, 1.0)
        with pytest.raises(StorageFull):
            await store.commit()
        patch.setattr(disk, "Rdict", _full)
        with pytest.raises(CrawlGuideError):
            await store.discover(CRAWL, links(X), None, 2.0)
    with suppress(CrawlGuideError):  # the first one may find the door shut
        await store.answer_get(CRAWL, "unknown", 1.0)
    assert await store.answer_get(CRAWL, "unknown", 1.0) is None
    await store.discover(CRAWL, links(B), None, 3.0)  # it was never acknowledged, so it is told again
    await store.commit()
    store = await reopened(store)
    assert [record.url for record in await store.find(CRAWL, ids(A, B)) if record] == [A, B]
    await store.close()


async def test_a_folder_that_was_taken_away_is_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await begun(tmp_path / "data", A)
    with monkeypatch.context() as patch:
        patch.setattr(store._disk, "write", _full)
        await store.discover(CRAWL, links(B), None, 1.0)
        with pytest.raises(StorageFull):
            await store.commit()
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    with pytest.raises(CrawlGuideError):
        await store.commit()
    (tmp_path / "elsewhere").rename(tmp_path / "data")
    await store.commit()
    await (await reopened(store)).close()


def _full(*arguments: Any, **more: Any) -> None:
    raise StorageFull("no room", retry_after_s=5.0)
