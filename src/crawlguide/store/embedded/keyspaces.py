"""Keyspaces on disk. Every key begins with the number of the crawl that owns it (0: the folder) and a letter."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from crawlguide.store.tables.keyspace import MOST_REPORTED, Keyspaces, key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.store.embedded.disk import Disk

FOLDER = 0
INSTANT = struct.Struct(">d")  # bytes of instants after 1970 sort as the instants do
FOR_EVER = b"\xff" * INSTANT.size
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


def answers(disk: Disk, owner: int, most: int) -> DiskExpiring:
    return _expiring(disk, owner, b"a", most)


def reported(disk: Disk, owner: int) -> DiskExpiring:
    return _expiring(disk, owner, b"t", MOST_REPORTED)


def _expiring(disk: Disk, owner: int, name: bytes, most: int) -> DiskExpiring:
    entries, ends, counts = (keyspace(disk, owner, letters) for letters in (name, name.upper(), b"N" + name))
    return DiskExpiring(entries, ends, counts, most)


class DiskKeyspace:
    """The keys below one prefix in one column family; what is not written yet is seen before what is."""

    def __init__(self, disk: Disk, family: str, prefix: bytes) -> None:
        self.family = family
        self._disk, self._prefix = disk, prefix
        self.pending: dict[bytes, bytes | None] = {}

    def get(self, key: bytes) -> bytes | None:
        full = self._prefix + key
        if full in self.pending:
            return self.pending[full]
        with self._disk.reading:
            return self._disk.get(self.family, full)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        prefix, pending = self._prefix, self.pending
        full = [prefix + key for key in keys]
        with self._disk.reading:
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
        with self._disk.reading:
            for key, _ in self._disk.items(self.family, self._prefix):
                if key[cut:] >= end or len(keys) == most:
                    break
                if self.pending.get(key, b"") is not None:
                    keys.append(key[cut:])
        return keys


class DiskExpiring:
    """Bytes until an instant: each entry also has a place in the order of ends. Of too many the first to end go."""

    def __init__(self, entries: DiskKeyspace, ends: DiskKeyspace, counts: DiskKeyspace, most: int) -> None:
        self._entries, self._ends, self._counts, self._most = entries, ends, counts, most
        self._counted: int | None = None
        self._owed = 0  # entries that may be removed for calls that removed none

    def get(self, key: str, at: float) -> bytes | None:
        entry = self._entries.get(key.encode())
        if entry is None or INSTANT.unpack_from(entry)[0] <= at:
            return None
        return entry[INSTANT.size :]

    def put(self, key: str, value: bytes, expires: float) -> None:
        end, name = INSTANT.pack(max(expires, 0.0)), key.encode()
        self._entries.put(name, end + value)
        self._ends.put(end + name, b"")
        self._set_count(self._count() + 1)

    def expire(self, at: float, most: int = 1_000) -> None:
        self._owed += most
        if self._owed < FEW:  # a few at a time are not worth reading the disk
            return
        most, self._owed = self._owed, 0
        ends = self._ends.keys_below(INSTANT.pack(at) + b"\xff" * 8, most)
        over = self._count() - len(ends) - self._most
        if over > 0 and len(ends) < most:
            ends = self._ends.keys_below(FOR_EVER, min(most, len(ends) + over))
        for end in ends:
            self._remove(end)
        self._set_count(self._count() - len(ends))

    def _remove(self, end: bytes) -> None:
        self._ends.delete(end)
        name = end[INSTANT.size :]
        entry = self._entries.get(name)
        if entry is not None and entry[: INSTANT.size] <= end[: INSTANT.size]:  # else it was put again
            self._entries.delete(name)

    def _count(self) -> int:
        """How many ends there are; those that an older version wrote do not count."""
        if self._counted is None:
            self._counted = int.from_bytes(self._counts.get(b"") or b"", "big")
        return self._counted

    def _set_count(self, count: int) -> None:
        self._counted = max(0, count)
        self._counts.put(b"", key_of(self._counted, 8))


def beyond(prefix: bytes) -> bytes:
    """The first key behind all keys that begin with this prefix."""
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")
