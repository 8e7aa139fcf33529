"""A RocksDB folder: keyspaces that are written together, and errors in plain words."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rocksdict import (
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DataBlockIndexType,
    DBCompressionType,
    Options,
    Rdict,
    WriteBatch,
    WriteOptions,
)

from crawlguide.core.errors import ConfigError, CrawlGuideError, DataError, StorageFull, StoreUnavailable
from crawlguide.store.embedded.keyspaces import DiskKeyspace, beyond

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MIB = 1 << 20
FAMILIES = ("urls", "links", "log", "rows")
OWNED = ("default", "urls", "links", "rows")  # families whose keys begin with a crawl's number
CACHE_BYTES = 16 * MIB
MEMTABLES_BYTES = 24 * MIB
WAL_BYTES = 64 * MIB  # bounds what is read again after a crash
POINT_LOOKUPS = ("default", "links")  # of keys that may not be there
Pending = Mapping[DiskKeyspace, Mapping[bytes, bytes | None]]
NEEDED_TO_REOPEN = 4 * MIB
# what RocksDB leaves in a folder when its very first start does not get far
LEFT_BY_A_FAILED_START = re.compile(r"LOCK|LOG.*|IDENTITY|MANIFEST-\d+|OPTIONS-\d+.*|\d+\.dbtmp")
BESIDE_THE_DATA = "access"  # keys and the audit log, which are there before anything is served


class Disk:
    """Nothing here knows what is kept. `write` may be called while another thread is in `sync`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.torn = False  # reading failed: what is in memory may be half a change
        self.reading = Reading(self)  # around whatever is read for a change
        self.changed: dict[DiskKeyspace, None] = {}  # those with something to write, in the order they changed
        self._busy = threading.Lock()  # held while the database is synced or opened anew
        self._flushing = threading.Lock()
        self._database: Any = None
        self._families: dict[str, Any] = {}
        self._handles: dict[str, Any] = {}
        self._unlogged = unlogged()
        self._open()

    def get(self, family: str, key: bytes) -> bytes | None:
        with translated_errors(self.folder):
            value: bytes | None = self._families[family].get(key)
            return value

    def get_many(self, family: str, keys: Sequence[bytes]) -> list[bytes | None]:
        with translated_errors(self.folder):
            values: list[bytes | None] = self._families[family].get(keys)
            return values

    def items(self, family: str, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Everything below a prefix from `start` on, in order."""
        with translated_errors(self.folder):
            for key, value in self._families[family].items(from_key=prefix + start):
                if not key.startswith(prefix):
                    return
                yield key, value

    def write(self, pending: Pending, emptied: Sequence[str] = ()) -> None:
        """All of it or nothing, into the log of the database: it survives this process from here on.

        Families to be emptied are so before anything is put.
        """
        batch = self._batch(pending, emptied)
        with translated_errors(self.folder):
            self._database.write(batch)

    def _batch(self, pending: Pending, emptied: Sequence[str]) -> WriteBatch:
        """Made apart: an error on its way must not hold on to handles of a database that is to be closed."""
        batch = WriteBatch(raw_mode=True)
        with translated_errors(self.folder):
            for family in emptied:
                batch.delete_range(b"", b"\xff" * 16, self._handles[family])
            for keyspace, entries in pending.items():
                handle = self._handles[keyspace.family]
                for key, value in entries.items():
                    if value is None:
                        batch.delete(key, handle)
                    else:
                        batch.put(key, value, handle)
        return batch

    def write_unlogged(self, family: str, entries: Mapping[bytes, bytes]) -> None:
        """What can be made again; it lasts after `flush`."""
        batch = WriteBatch(raw_mode=True)
        for key, value in entries.items():
            batch.put(key, value, self._handles[family])
        with translated_errors(self.folder):
            self._database.write(batch, self._unlogged)

    def delete_range(self, family: str, first: bytes, end: bytes) -> None:
        with translated_errors(self.folder):
            self._families[family].delete_range(first, end)

    def delete_below(self, prefix: bytes) -> None:
        """Everything below a prefix, in every column family."""
        for family in OWNED:
            self.delete_range(family, prefix, beyond(prefix))

    def sync(self) -> None:
        """What was written survives a loss of power from here on."""
        with self._busy, translated_errors(self.folder):
            self._database.flush_wal(True)

    def flush(self, family: str) -> None:
        """What was written unlogged survives a loss of power from here on."""
        with self._flushing, translated_errors(self.folder):
            self._families[family].flush()

    def flush_all(self) -> None:
        for family in list(self._families):
            self.flush(family)

    def size(self) -> float:
        """Bytes of all files, copies under `backups/` not counted."""
        sizes = [0]
        with contextlib.suppress(OSError), os.scandir(self.folder) as files:
            for file in files:
                with contextlib.suppress(FileNotFoundError):  # RocksDB tidies up while we look
                    sizes.append(file.stat().st_size if file.is_file() else 0)
        return float(sum(sizes))

    def checkpoint(self, target: Path) -> None:
        """A second folder with the same content, sharing files with this one where the file system can."""
        with self._busy, translated_errors(self.folder):
            Checkpoint(self._database).create_checkpoint(str(target))

    def reopen(self) -> None:
        """After an error: RocksDB may refuse to write on, or not know what reached the disk."""
        with translated_errors(self.folder):
            room = shutil.disk_usage(self.folder).free
        if room < NEEDED_TO_REOPEN:
            raise full(self.folder)
        with self._busy, self._flushing:
            self._end()  # what it could not write any more is written again
            try:
                self._open()
            except ConfigError as problem:
                raise StoreUnavailable(problem.message, retry_after_s=1.0) from None

    def close(self) -> None:
        with self._busy, self._flushing:
            problem = self._end()
        if problem is not None:
            raise problem

    def _end(self) -> CrawlGuideError | None:
        """Close the database, or at least let it go: with the last handle its lock goes. Returns what went wrong."""
        database, self._database = self._database, None
        self._families.clear()
        self._handles.clear()
        try:
            if database is not None:
                database.close()
        except Exception as problem:  # noqa: BLE001 - the library raises nothing more precise
            return translated(problem, self.folder)
        finally:
            del database
            gc.collect()  # an error that is still on its way may hold on to what it came from
        return None

    def _open(self) -> None:
        try:
            _check_folder(self.folder)
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise ConfigError(f"data: {self.folder} cannot be used: {problem.strerror}") from None
        try:
            self._database = Rdict(str(self.folder), database(), column_families=families())
        except Exception as problem:  # noqa: BLE001 - the library raises nothing more precise
            raise _cannot_open(self.folder, str(problem)) from None
        for name in ("default", *FAMILIES):
            self._families[name] = self._database.get_column_family(name)
            self._handles[name] = self._database.get_column_family_handle(name)


# errors


class translated_errors:  # noqa: N801 - read as a phrase
    """RocksDB's errors are raised as ours. A class, not a generator: it stands around every read and write."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, _: object) -> None:
        if isinstance(problem, Exception):
            raise translated(problem, self._folder) from None


class Reading:
    """A change that was under way when reading failed has left half of itself in memory."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, _: object) -> None:
        if isinstance(problem, CrawlGuideError):
            self._disk.torn = True


def translated(problem: Exception, folder: Path) -> CrawlGuideError:
    """The library raises plain exceptions with RocksDB's message in them."""
    text = str(problem)
    if "No space left" in text:
        return full(folder)
    if "Corruption" in text:
        return DataError(f"data: {folder} is damaged: {text[:300]}")
    return StoreUnavailable(f"data: {folder} cannot be read or written: {text[:300]}", retry_after_s=1.0)


def full(folder: Path) -> StorageFull:
    return StorageFull(f"data: no room left on the disk of {folder}; what was acknowledged is safe", retry_after_s=5.0)


def _check_folder(folder: Path) -> None:
    """A folder with other people's files is refused."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"data: expected a folder, {folder} is a file")
    if not folder.exists() or (folder / "CURRENT").exists():
        return
    others = [path.name for path in folder.iterdir() if path.name != BESIDE_THE_DATA]
    if not all(LEFT_BY_A_FAILED_START.fullmatch(name) for name in others):
        raise ConfigError(f"data: {folder} holds other things and no crawlguide data; name an empty or new folder")


def _cannot_open(folder: Path, text: str) -> ConfigError:
    if "While lock file" in text or "lock hold by current process" in text:
        how = "stop it, or speak to the server that has it open (--url, of agents --guide)"
        return ConfigError(f"data: {folder} is in use by another process; {how}")
    return ConfigError(f"data: {folder} cannot be opened: {text[:300]}")


# how RocksDB is set up: little memory of its own, since what is needed often lives in our columns


def database() -> Options:
    options = _common()
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_db_write_buffer_size(MEMTABLES_BYTES)
    options.set_max_total_wal_size(WAL_BYTES)
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(3)
    options.set_max_log_file_size(4 * MIB)
    options.set_max_manifest_file_size(8 * MIB)
    options.set_manifest_preallocation_size(256 * 1024)
    options.set_bytes_per_sync(MIB)
    return options


def families() -> dict[str, Options]:
    cache = Cache(CACHE_BYTES)
    return {name: _family(name, cache) for name in FAMILIES}


def _family(name: str, cache: Cache) -> Options:
    options = _common()
    table = BlockBasedOptions()
    if name == "urls":  # each is read about once: keeping what was read costs more than reading it
        table.disable_cache()
    else:
        table.set_block_cache(cache)
    if name in POINT_LOOKUPS:
        table.set_bloom_filter(10, False)
        table.set_data_block_index_type(DataBlockIndexType.binary_and_hash())
        table.set_data_block_hash_ratio(0.75)
    options.set_block_based_table_factory(table)
    return options


def _common() -> Options:
    options = Options(raw_mode=True)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_write_buffer_size(8 * MIB)
    return options


def unlogged() -> WriteOptions:
    """For what can be made again: past RocksDB's own log."""
    options = WriteOptions()
    options.disable_wal = True  # type: ignore[method-assign, assignment]  # a property, whatever the stub says
    return options
