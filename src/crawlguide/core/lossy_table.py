"""A bounded hash table of records, kept in a sheet of a notebook: a newer key overwrites an older one in its slot.

Each key has exactly one slot (its low bits), so a look-up reads one record and nothing has to be evicted: what was not
seen for long is overwritten first. The table grows while it fills, up to its bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core.notebook import Sheet

if TYPE_CHECKING:
    from crawlguide.core.notebook import Records
    from crawlguide.core.tables import I64, U64

FIRST_SLOTS, MOST_SLOTS = 1 << 10, 1 << 16
SPARSE = 4  # the table grows when more than one slot in four is used, so that few keys overwrite each other


class LossyTable:
    """The first field of a record is `key`, which is never 0; the other fields are the caller's."""

    def __init__(self, kind: np.dtype[Any], sheet: Sheet | None = None, most: int = MOST_SLOTS) -> None:
        self.sheet = Sheet(kind) if sheet is None else sheet
        self._most = most
        self._filled = int(np.count_nonzero(self.sheet.rows["key"]))

    @property
    def rows(self) -> Records:
        """The records by slot. It is another array after the table grew: do not hold on to it."""
        return self.sheet.rows

    def find(self, keys: U64) -> I64:
        """The slot of each key; -1 for a key that is not in the table."""
        if not self.sheet.used:
            return np.full(len(keys), -1)
        slots = self._slots(keys)
        return np.where((self.rows["key"][slots] == keys) & (keys > 0), slots, -1)

    def claim(self, keys: U64) -> I64:
        """The slot of each key, inserted where it is missing: a new record is all zeros but for its key."""
        if not len(keys):
            return np.zeros(0, np.int64)
        self._make_room(len(keys))
        slots = self._slots(keys)
        new = self.rows["key"][slots] != keys
        self._filled += int(np.count_nonzero(self.rows["key"][slots[new]] == 0))
        self.rows[slots[new]] = 0
        self.rows["key"][slots] = keys
        self.sheet.changed(slots)
        return slots

    def claim_one(self, key: int) -> tuple[int, bool]:
        """The same for one key; and whether it was in the table already."""
        self._make_room(1)
        slot = key & self.sheet.used - 1
        before = int(self.rows["key"][slot])
        if before == key:
            return slot, True
        self._filled += before == 0
        self.rows[slot] = 0
        self.rows["key"][slot] = key
        self.sheet.changed(np.array([slot]))
        return slot, False

    def _slots(self, keys: U64) -> I64:
        return (keys & np.uint64(self.sheet.used - 1)).astype(np.int64)

    def _make_room(self, more: int) -> None:
        while SPARSE * (self._filled + more - 1) >= self.sheet.used and self.sheet.used < self._most:
            self._grow()

    def _grow(self) -> None:
        old = self.rows[: self.sheet.used].copy()
        size = min(max(FIRST_SLOTS, 4 * len(old)), self._most)
        self.sheet.fit(size)
        self.rows[: len(old)] = 0
        records = old[old["key"] > 0]
        self.rows[self._slots(records["key"])] = records
        self._filled = len(records)
        self.sheet.changed(np.arange(size))
