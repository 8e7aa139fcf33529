"""Keyspaces on disk. Every key begins with the number of the crawl that owns it (0: the folder) and a letter."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from crawlguide.core.errors import CrawlGuideError
from crawlguide.store.tables.keyspace import Keyspaces, key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.store.embedded.disk import Disk

FOLDER = 0
INSTANT = struct.Struct(">d")  # bytes of instants after 1970 sort as the instants do
FEW = 100


def keyspace(disk: Disk, owner: int, name: bytes, family: str = "default") -> DiskKeyspace:
    return DiskKeyspace(disk, family, key_of(owner) + name)


def of_crawl(disk: Disk, owner: int) -> Keyspaces:
    return Keyspaces(
        urls=keyspace(disk, owner, b"u", "urls"),
        metadata=keyspace(disk, owner, b"m"),
        links=keyspace(disk, owner, b"l", "links"),
        leases=keyspace(disk, owner, b"e"),
        hosts=keyspace(disk, owner, b"h"),
        states=keyspace(disk, owner, b"s"),
    )


def sheets(disk: Disk, owner: int) -> DiskKeyspace:
    return keyspace(disk, owner, b"n")


def counters(disk: Disk, owner: int) -> DiskKeyspace:
    return keyspace(disk, owner, b"c")


def answers(disk: Disk, owner: int) -> DiskExpiring:
    return DiskExpiring(keyspace(disk, owner, b"a"), keyspace(disk, owner, b"A"))


def reported(disk: Disk, owner: int) -> DiskExpiring:
    return DiskExpiring(keyspace(disk, owner, b"t"), keyspace(disk, owner, b"T"))


class DiskKeyspace:
    """The keys below one prefix in one column family; what is not written yet is seen before what is."""

    def __init__(self, disk: Disk, family: str, prefix: bytes) -> None:
        self.family = family
        self._disk, self._prefix = disk, prefix
        self._reading = _Reading(disk)
        self.pending: dict[bytes, bytes | None] = {}

    def get(self, key: bytes) -> bytes | None:
        full = self._prefix + key
        if full in self.pending:
            return self.pending[full]
        with self._reading:
            return self._disk.get(self.family, full)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        prefix, pending = self._prefix, self.pending
        full = [prefix + key for key in keys]
        with self._reading:
            values = self._disk.get_many(self.family, full)
        return [pending.get(key, value) for key, value in zip(full, values, strict=True)] if pending else values

    def put(self, key: bytes, value: bytes) -> None:
        self.pending[self._prefix + key] = value
        self._disk.changed[self] = None

    def delete(self, key: bytes) -> None:
        self.pending[self._prefix + key] = None
        self._disk.changed[self] = None

    def is_below(self, prefix: bytes) -> bool:
        return self._prefix.startswith(prefix)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Everything, in the order of the keys: for opening, when nothing is pending."""
        cut = len(self._prefix)
        for key, value in self._disk.items(self.family, self._prefix):
            yield key[cut:], value

    def keys_below(self, end: bytes, most: int) -> list[bytes]:
        """Up to `most` of the first keys that are smaller than `end`, written or not."""
        cut = len(self._prefix)
        keys: list[bytes] = []
        with self._reading:
            for key, _ in self._disk.items(self.family, self._prefix):
                if key[cut:] >= end or len(keys) == most:
                    break
                if self.pending.get(key, b"") is not None:
                    keys.append(key[cut:])
        return keys


class _Reading:
    """A change that was under way when reading failed has left half of itself in memory."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, _: object) -> None:
        if isinstance(problem, CrawlGuideError):
            self._disk.torn = True


class DiskExpiring:
    """Bytes until an instant: each entry also has a place in the order of ends."""

    def __init__(self, entries: DiskKeyspace, ends: DiskKeyspace) -> None:
        self._entries, self._ends = entries, ends

    def get(self, key: str, at: float) -> bytes | None:
        entry = self._entries.get(key.encode())
        if entry is None or INSTANT.unpack_from(entry)[0] <= at:
            return None
        return entry[INSTANT.size :]

    def put(self, key: str, value: bytes, expires: float) -> None:
        end, name = INSTANT.pack(max(expires, 0.0)), key.encode()
        self._entries.put(name, end + value)
        self._ends.put(end + name, b"")

    def expire(self, at: float, most: int = 1_000) -> None:
        if most < FEW:  # a few at a time are not worth reading the disk: upkeep does it
            return
        for end in self._ends.keys_below(INSTANT.pack(at) + b"\xff" * 8, most):
            self._ends.delete(end)
            name = end[INSTANT.size :]
            entry = self._entries.get(name)
            if entry is not None and entry[: INSTANT.size] <= end[: INSTANT.size]:
                self._entries.delete(name)


def beyond(prefix: bytes) -> bytes:
    """The first key behind all keys that begin with this prefix."""
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")
