"""Notebooks in a folder: what was committed is there after whatever happened, record for record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from crawlguide.core.clock import ManualClock
from crawlguide.core.errors import StorageFull
from crawlguide.gateway import backup
from crawlguide.guide.local import LocalGuide
from crawlguide.store.embedded import EmbeddedStore, writer
from crawlguide.store.embedded import format as formats
from crawlguide.store.embedded.state_hash import PackedRows, Room, facts, needed, state_hash
from crawlguide.store.embedded.store import FORMAT
from crawlguide.store.moves.rank import Quota

from . import files
from .builders import CRAWL, fetches, ids, links
from .crawling import CONFIG
from .plain import known, learned
from .test_notebooks import ARM, OTHER, written

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from crawlguide.core.notebook import Sheet

QUOTA = Quota(urls=10_000, urls_per_host=10_000, links=10_000)
NUMBER = np.dtype(np.float32)
A = "https://a.org/1"


async def begun(folder: Path) -> EmbeddedStore:
    store = EmbeddedStore(folder, QUOTA)
    for crawl in (CRAWL, OTHER):
        await store.crawl_put(crawl, b"{}", 0.0)
    await store.commit()
    return store


async def arms(store: EmbeddedStore) -> Sheet:
    return (await store.notebook(CRAWL)).sheet("arms", ARM)


async def says(store: EmbeddedStore) -> dict[str, Any]:
    return learned(await store.notebook(CRAWL))


async def until_a_snapshot(store: EmbeddedStore, work: Callable[[int], None]) -> None:
    """Work and commit until a snapshot that began since has come to its end."""
    store._writer._snapshot.abandon()
    before, number = store._writer.folder.get(writer.LOG_START), 0
    while store._writer.folder.get(writer.LOG_START) == before:
        work(number)
        await store.commit(durable=False)
        number += 1


async def crashed(store: EmbeddedStore, folder: Path) -> EmbeddedStore:
    """What a process finds that starts after this one has ended without a word."""
    return EmbeddedStore(files.copy(store.folder, folder, store), QUOTA)


async def test_a_sheet_is_as_long_after_a_restart_as_it_was(tmp_path: Path) -> None:
    store = await begun(tmp_path)
    sheet = await arms(store)
    written(sheet, [1], 7)
    sheet.fit(90)  # most of it is room that nobody has written into
    await store.commit()
    before, said = store.state_hash(), await says(store)
    await store.close()
    store = EmbeddedStore(tmp_path, QUOTA)
    assert (await arms(store)).used == 90
    assert (await says(store), store.state_hash()) == (said, before)
    await store.close()


async def test_what_was_committed_survives_a_crash_and_what_was_not_does_not(tmp_path: Path) -> None:
    store = await begun(tmp_path / "data")
    written(await arms(store), [0, 3], 7)
    await store.commit()
    said = await says(store)
    written(await arms(store), [0, 5], 8)
    (await store.notebook(CRAWL)).sheet("new", NUMBER).fit(3)
    found = await crashed(store, tmp_path / "copy")
    assert await says(found) == said
    await found.close()
    await store.commit(durable=False)
    found = await crashed(store, tmp_path / "copy 2")
    assert await says(found) == await says(store) != said
    await found.close()
    await store.close()


async def test_a_write_that_failed_leaves_records_to_be_written_with_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await begun(tmp_path / "data")
    written(await arms(store), [0], 1)
    await store.commit()
    said = await says(store)
    with monkeypatch.context() as patch:
        patch.setattr(store._disk, "write", _full)
        await store.discover(CRAWL, links(A), None, 1.0)
        written(await arms(store), [0, 1], 2)
        (await arms(store)).fit(9)
        with pytest.raises(StorageFull):
            await store.commit()
        found = await crashed(store, tmp_path / "copy")
        assert (await says(found), (await found.stats(CRAWL))["queued"]) == (said, 0)
        await found.close()
    await store.commit()
    found = await crashed(store, tmp_path / "copy 2")
    assert (await says(found), (await found.stats(CRAWL))["queued"]) == (await says(store), 1)
    assert (await arms(found)).used == 9
    await found.close()
    await store.close()


def _full(*arguments: Any, **more: Any) -> None:
    raise StorageFull("no room", retry_after_s=5.0)


async def test_snapshots_hold_sheets_while_they_are_written_and_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LOG_AT_LEAST", 3_000)
    monkeypatch.setattr(writer, "SNAPSHOT_PACE", 1)
    store, starts = await begun(tmp_path / "data"), set[bytes | None]()
    await store.discover(CRAWL, links(A), None, 0.0)
    for number in range(2_500):
        sheet = await arms(store)
        written(sheet, [number, number // 2], number)
        await store.record(CRAWL, fetches(A, fetch_time=str(number)), float(number), 3)
        await store.commit(durable=False)
        starts.add(store._writer.folder.get(writer.LOG_START))
    assert len(starts) > 2  # several came to their end
    found = await crashed(store, tmp_path / "copy")
    assert await known(found, CRAWL, ids(A)) == await known(store, CRAWL, ids(A))
    assert (await arms(found)).used == 2_500
    await found.close()
    await store.close()


async def test_a_sheet_that_began_anew_is_not_mixed_with_what_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of both kinds are in the snapshot and in the log."""
    monkeypatch.setattr(writer, "LOG_AT_LEAST", 3_000)
    store = await begun(tmp_path)
    sheet = await arms(store)
    await until_a_snapshot(store, lambda number: written(sheet, [number % 500], number))
    numbers = (await store.notebook(CRAWL)).sheet("arms", NUMBER)

    def count(number: int) -> None:
        numbers.fit(number % 500 + 1)
        numbers.rows[number % 500] = number
        numbers.changed(np.array([number % 500]))

    await until_a_snapshot(store, count)
    tables = {key[4:12].strip() for key, _ in store._disk.items("rows", b"\0\0\0\1")}
    assert tables >= {b"~1", b"~2"}
    said = await says(store)
    for _ in range(2):
        await store.close()
        store = EmbeddedStore(tmp_path, QUOTA)
        assert await says(store) == said
    tables = {key[4:12].strip() for key, _ in store._disk.items("rows", b"\0\0\0\1")}
    assert b"~1" not in tables  # nothing is left of what nobody can read
    assert b"~2" in tables
    await store.close()


async def test_nothing_is_left_of_the_notebook_of_a_crawl_that_was_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LOG_AT_LEAST", 3_000)
    store = await begun(tmp_path)
    other = (await store.notebook(OTHER)).sheet("arms", ARM)
    sheet = await arms(store)

    def work(number: int) -> None:
        written(sheet, [number % 500], number)
        written(other, [number % 500], number + 1)

    await until_a_snapshot(store, work)
    assert list(store._disk.items("rows", b"\0\0\0\1"))
    said = learned(await store.notebook(OTHER))
    written(await arms(store), [0], 5)
    await store.crawl_delete(CRAWL)
    await store.commit()
    for family in ("default", "rows"):
        assert not list(store._disk.items(family, b"\0\0\0\1"))
    await store.close()
    store = EmbeddedStore(tmp_path, QUOTA)
    assert learned(await store.notebook(OTHER)) == said
    await store.close()


async def test_a_backup_holds_notebooks_and_its_hash_speaks_of_them(tmp_path: Path) -> None:
    store = await begun(tmp_path / "data")
    empty = store.state_hash()
    written(await arms(store), [0, 4], 7)
    said = await says(store)
    before = await store.backup(tmp_path / "copy")
    assert before != empty
    written(await arms(store), [0], 8)
    assert store.state_hash() != before
    found = EmbeddedStore(tmp_path / "copy", QUOTA)
    assert (await says(found), found.state_hash()) == (said, before)
    await found.close()
    await store.close()


async def test_of_crawls_that_nobody_uses_nothing_is_unpacked_at_the_moment_of_a_backup(tmp_path: Path) -> None:
    store = await begun(tmp_path / "data")
    written(await arms(store), list(range(5_000)), 7)
    await store.commit()
    before, notebook = store.state_hash(), await store.notebook(CRAWL)
    notebook.pack()
    copied = facts(store, store._owners, Room())
    assert state_hash(copied) == before
    (packed,) = [fact for crawl in copied.crawls for fact in crawl.learned if isinstance(fact, PackedRows)]
    assert packed.packed is notebook.in_use()["arms"].packed
    assert needed(store.crawls.values()) < 5_000 * ARM.itemsize
    await store.close()


async def test_a_strategy_that_does_not_say_what_it_changed_spoils_no_backup(tmp_path: Path) -> None:
    store = await begun(tmp_path / "data")
    written(await arms(store), [0], 7)
    await store.commit()
    (await arms(store)).rows["pulls"][0] = 8
    slip = await backup.backup(LocalGuide(store, CONFIG, ManualClock()), tmp_path / "copy")
    found = await backup.restore(tmp_path / "copy", tmp_path / "restored")
    (known, learned), (same, other) = (one.state_hash.split("-") for one in (slip, found))
    assert known == same
    assert learned != other
    await store.close()


async def test_a_folder_from_before_there_were_notebooks_is_opened_and_marked(tmp_path: Path) -> None:
    store = await begun(tmp_path)
    first = msgspec.json.decode(formats.now(), type=formats.Written)
    store._writer.folder.put(FORMAT, msgspec.json.encode(msgspec.structs.replace(first, version=1)))
    await store.close()
    for came_from in (1, None):
        store = EmbeddedStore(tmp_path, QUOTA)
        assert store.migrated_from == came_from
        assert msgspec.json.decode(store._writer.folder.get(FORMAT) or b"", type=formats.Written) == first
        written(await arms(store), [2], 7)
        await store.close()


async def test_the_kinds_of_records_come_back_as_they_were(tmp_path: Path) -> None:
    kinds = [ARM, NUMBER, np.dtype([("a", ">u2"), ("b", "?"), ("c", "<U3"), ("d", "<f2", (2, 2))]), np.dtype("<M8[s]")]
    store = await begun(tmp_path)
    for number, kind in enumerate(kinds):
        (await store.notebook(CRAWL)).sheet(f"kind {number}", kind).fit(1)
    await store.close()
    store = EmbeddedStore(tmp_path, QUOTA)
    notebook = await store.notebook(CRAWL)
    assert [notebook.sheet(f"kind {number}", kind).used for number, kind in enumerate(kinds)] == [1] * len(kinds)
    found = notebook.sheet("kind 0", ARM)
    assert found.rows.dtype.isalignedstruct == ARM.isalignedstruct  # kernels look at that too
    assert found.rows.flags.owndata  # so that it can grow in place
    await store.close()
