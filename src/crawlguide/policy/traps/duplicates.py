"""Duplicates: for each content, title, URL form and link text, the first page that had it.

All tables are bounded hash tables in which a newer key overwrites an older one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash

from crawlguide.core.kernels import kernel, nothing, one_i64, part, u64s
from crawlguide.core.lossy_table import LossyTable

if TYPE_CHECKING:
    from crawlguide.core.notebook import Sheet
    from crawlguide.core.tables import U64

FIRST_ROOM = 1 << 9
RECORD = np.dtype([("key", np.uint64), ("owner", np.uint64)])


class FirstOwners:
    """The first owner of each key, in memory alone, for kernels (see `owned_by_another`).

    Of keys with the same low bits, as many as `slots` has, the newest is known. There is room for what was met so far:
    where there are very many crawls, most are small.
    """

    def __init__(self, slots: int = 1 << 16) -> None:
        self.slots, self._met = slots, 0
        self.keys, self.owners = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        self._clear(min(FIRST_ROOM, slots))

    def expect(self, count: int) -> None:
        """Make room for so many keys more."""
        self._met += count
        if 2 * self._met > len(self.keys) < self.slots:
            self._met = int(np.count_nonzero(self.keys)) + count
        if 2 * self._met > len(self.keys) < self.slots:
            self.unpack(self._clear(min(1 << (4 * self._met).bit_length(), self.slots)))

    def packed(self) -> bytes:
        used = np.flatnonzero(self.keys)
        return np.stack([self.keys[used], self.owners[used]]).tobytes()

    def unpack(self, data: bytes) -> None:
        keys, owners = np.frombuffer(data, np.uint64).reshape(2, -1).copy()
        self.expect(len(keys))
        put_all(keys, owners, self.keys, self.owners, self.slots)

    def _clear(self, room: int) -> bytes:
        """Begin with so much room; returns what was known."""
        known, self._met = self.packed(), 0
        self.keys, self.owners = np.zeros(room, np.uint64), np.zeros(room, np.uint64)
        return known

    def known_of_another(self, key: U64, owner: U64) -> bool:
        """Whether another owner had the first of these keys before; nobody owns it by looking."""
        at = place_of_first(key, self.keys, self.slots)
        return bool(self.keys[at] == key[0] and self.owners[at] != owner[0])


class StoredFirstOwners:
    """The first owner of each text, in a sheet of a notebook; it grows as it fills."""

    def __init__(self, sheet: Sheet | None = None) -> None:
        self._table = LossyTable(RECORD, sheet)
        self.sheet = self._table.sheet

    def owned_by_another(self, text: str, owner: int) -> bool:
        """Whether another owner had this text first. If nobody had, this one owns it from now on."""
        slot, found = self._table.claim_one(xxhash.xxh3_64_intdigest(text.encode()))
        if found:
            return int(self._table.rows["owner"][slot]) != owner
        self._table.rows["owner"][slot] = owner
        return False


@part
def place_in(key, keys, slots):  # type: ignore[no-untyped-def]
    """Where the key is, or the one that it replaces, or else room for it."""
    last, low_bits = np.uint64(len(keys) - 1), np.uint64(slots - 1)
    at = key & last
    while keys[at] != 0 and (keys[at] & low_bits) != (key & low_bits):
        at = (at + np.uint64(1)) & last
    return at


@part
def owned_by_another(key, owner, keys, owners, slots):  # type: ignore[no-untyped-def]
    """The same for the columns of `FirstOwners`, in which there must be room for it."""
    at = place_in(key, keys, slots)
    if keys[at] == key:
        return owners[at] != owner
    keys[at], owners[at] = key, owner
    return False


@kernel(one_i64(u64s, u64s, one_i64))
def place_of_first(some_keys, keys, slots):  # type: ignore[no-untyped-def]
    return place_in(some_keys[0], keys, slots)


@kernel(nothing(u64s, u64s, u64s, u64s, one_i64))
def put_all(some_keys, some_owners, keys, owners, slots):  # type: ignore[no-untyped-def]
    for number in range(len(some_keys)):
        at = place_in(some_keys[number], keys, slots)
        keys[at], owners[at] = some_keys[number], some_owners[number]
