"""Folders in the wrong hands, and folders from another time."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from crawlguide.core.clock import ManualClock
from crawlguide.core.errors import ConfigError, CrawlGuideError
from crawlguide.store.embedded import EmbeddedStore, writer
from crawlguide.store.embedded import format as formats
from crawlguide.store.embedded.disk import Disk
from crawlguide.store.embedded.journal import TABLE_KINDS, Entry, encode
from crawlguide.store.embedded.keyspaces import DiskKeyspace
from crawlguide.store.embedded.notebook import MARK
from crawlguide.store.embedded.store import FORMAT
from crawlguide.store.moves.rank import Quota

from .builders import CRAWL, ids, links
from .crawling import MAIN, WEB, Crawler
from .faults import WRITES, Fault
from .plain import known

if TYPE_CHECKING:
    from collections.abc import Iterator

QUOTA = Quota(urls=1_000, urls_per_host=1_000, links=1_000)
IDS = ids(*WEB)
NOBODY = 65_534


# in the wrong hands


async def test_a_folder_serves_one_store_at_a_time(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path, QUOTA)
    with pytest.raises(ConfigError, match=f"{tmp_path} is in use"):
        EmbeddedStore(tmp_path, QUOTA)
    await store.crawl_put(CRAWL, b"{}", 0.0)
    await store.commit()  # the first one does not mind
    await store.close()
    await EmbeddedStore(tmp_path, QUOTA).close()


def test_things_of_somebody_elses_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("all of it")
    with pytest.raises(ConfigError, match=f"{tmp_path} holds other things"):
        EmbeddedStore(tmp_path, QUOTA)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("below", ["", "data"])
def test_a_file_is_no_folder(tmp_path: Path, below: str) -> None:
    path = tmp_path / "file"
    path.write_text("text")
    with pytest.raises(ConfigError, match=str(path)):
        EmbeddedStore(path / below, QUOTA)


def test_a_folder_that_only_looks_like_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / "CURRENT").write_text("MANIFEST-000001\n")
    with pytest.raises(ConfigError, match=str(tmp_path)):
        EmbeddedStore(tmp_path, QUOTA)


async def test_a_first_start_that_did_not_get_far_does_not_spoil_the_folder(tmp_path: Path) -> None:
    """RocksDB leaves these behind when the disk is full, or the process ends, before it has written CURRENT."""
    for name in ("LOCK", "LOG", "IDENTITY", "MANIFEST-000001", "000001.dbtmp"):
        (tmp_path / name).touch()
    store = EmbeddedStore(tmp_path, QUOTA)
    await store.crawl_put(CRAWL, b"{}", 0.0)
    await store.close()


async def test_a_folder_that_lost_its_way_in_is_not_begun_anew(tmp_path: Path) -> None:
    await filled(tmp_path)
    (tmp_path / "CURRENT").unlink()
    with pytest.raises(ConfigError, match=str(tmp_path)):
        EmbeddedStore(tmp_path, QUOTA)
    assert any(path.suffix == ".sst" for path in tmp_path.iterdir())  # noqa: ASYNC240 - nobody else waits


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without the right to read everything; somebody who has none keeps what he has."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(("mode", "below"), [(0o000, ""), (0o000, "data"), (0o555, "data")])
def test_a_folder_that_may_not_be_used_is_named(mode: int, below: str) -> None:
    with tempfile.TemporaryDirectory() as top:
        Path(top).chmod(0o755)
        folder = Path(top) / "folder"
        folder.mkdir()
        folder.chmod(mode)
        with as_nobody(), pytest.raises(ConfigError, match=str(folder)) as refused:
            EmbeddedStore(folder / below, QUOTA)
        assert "in use" not in refused.value.message
        folder.chmod(0o755)


# from another time


async def test_a_folder_of_a_newer_crawlguide_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    await filled(tmp_path)
    written = msgspec.json.decode(formats.now(), type=formats.Written)
    newer = msgspec.structs.replace(written, version=formats.VERSION + 1)
    rewritten(tmp_path, newer)
    for _ in range(2):  # whoever was refused does not keep the folder from anybody
        with pytest.raises(ConfigError, match=f"{tmp_path} was written by a newer crawlguide"):
            EmbeddedStore(tmp_path, QUOTA)
    rewritten(tmp_path, written)
    store = EmbeddedStore(tmp_path, QUOTA)
    assert (await store.stats(MAIN))["fetches"] > 0
    await store.close()


def older_layouts() -> dict[str, np.dtype[Any]]:
    """The tables as an older crawlguide might have written them: other kinds, another order, a field less."""
    kinds = {"depth": "<i4", "status": "<i4", "failures": "<i4", "pages": "<i4", "leases": "<i8"}
    older: dict[str, np.dtype[Any]] = {"ids": TABLE_KINDS["ids"], "domains": np.dtype(np.int32)}
    for table in ("rows", "hosts", "pace", "given"):
        fields = [
            (name, kinds.get(name, kind[0])) for name, kind in reversed([*(TABLE_KINDS[table].fields or {}).items()])
        ]
        older[table] = np.dtype([field for field in fields if field[0] != "given"])
    return older


async def filled(folder: Path) -> dict[str, Any]:
    """A folder with a snapshot and a log behind it; returns what it knows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "LOG_AT_LEAST", 4_000)
        crawler = Crawler(EmbeddedStore(folder, QUOTA), ManualClock())
        await crawler.begin()
        for _ in range(8):
            await crawler.step()
    found = await known(crawler.store, MAIN, IDS)
    await crawler.store.close()
    return found


def rewritten(folder: Path, written: formats.Written) -> None:
    """Another word on how the folder was written, and every record as that word says."""
    disk = Disk(folder)
    older = {table: formats.laid_out(text) for table, text in written.tables.items()}
    chunks = {key: _converted(key[4:12].decode().strip(), value, older) for key, value in disk.items("rows", b"")}
    entries = {key: _entry(value, older) for key, value in disk.items("log", b"")}
    assert chunks
    assert entries
    for family, items in (("rows", chunks), ("log", entries)):
        keyspace = DiskKeyspace(disk, family, b"")
        disk.write({keyspace: items})
    disk.write({DiskKeyspace(disk, "default", b""): {b"\0\0\0\0F" + FORMAT: msgspec.json.encode(written)}})
    disk.sync()
    disk.close()


def _entry(value: bytes, older: dict[str, np.dtype[Any]]) -> bytes:
    entry = msgspec.msgpack.decode(value, type=Entry)
    for update in entry.updates:
        update.records = _converted(update.table, update.records, older)
    return encode(entry)


def _converted(table: str, records: bytes, older: dict[str, np.dtype[Any]]) -> bytes:
    if table.startswith(MARK):  # a sheet says itself how it is laid out
        return records
    new = np.frombuffer(records, TABLE_KINDS[table])
    if new.dtype.names is None:
        return new.astype(older[table]).tobytes()
    old = np.zeros(len(new), older[table])
    for name in old.dtype.names or ():
        old[name] = new[name]
    return old.tobytes()


def older_words() -> formats.Written:
    return formats.Written(0, {table: formats.layout(kind) for table, kind in older_layouts().items()})


async def test_a_folder_of_an_older_crawlguide_is_read_by_the_names_of_its_fields(tmp_path: Path) -> None:
    before = await filled(tmp_path)
    rewritten(tmp_path, older_words())
    for came_from in (0, None):
        store = EmbeddedStore(tmp_path, QUOTA)
        assert store.migrated_from == came_from
        assert await known(store, MAIN, IDS) == before
        await store.close()


async def test_a_folder_that_was_brought_up_to_date_works_on(tmp_path: Path) -> None:
    await filled(tmp_path)
    rewritten(tmp_path, older_words())
    store = EmbeddedStore(tmp_path, QUOTA)
    await store.discover(MAIN, links("https://new.org/"), None, 2e9)
    await store.commit()
    after = await known(store, MAIN, IDS)
    await store.close()
    store = EmbeddedStore(tmp_path, QUOTA)
    assert await known(store, MAIN, IDS) == after
    assert (await store.find(MAIN, ids("https://new.org/")))[0] is not None
    await store.close()


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_bringing_a_folder_up_to_date_may_fail_and_be_tried_again(
    tmp_path: Path, number: int, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await filled(tmp_path)
    rewritten(tmp_path, older_words())
    fault = Fault(tmp_path, WRITES, number, when)
    with monkeypatch.context() as patch:
        fault.arm(patch)
        with pytest.raises(CrawlGuideError):
            EmbeddedStore(tmp_path, QUOTA)
    assert fault.struck
    store = EmbeddedStore(tmp_path, QUOTA)
    assert await known(store, MAIN, IDS) == before
    await store.close()
