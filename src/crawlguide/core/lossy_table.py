"""Records by key, in a sheet that is kept: bounded, grown as it fills, and looked up without reading anything else.

Each key has one place. Of two keys that claim it the newer stays, so what was not met for long is forgotten first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core.notebook import Sheet

if TYPE_CHECKING:
    from crawlguide.core.notebook import Records
    from crawlguide.core.tables import I64, U64

FEWEST, MOST = 1 << 10, 1 << 16
CROWDED = 4  # a table of which more than one place in so many is taken grows


class LossyTable:
    """The first field of a record is `key`, which is never 0; what else it holds is the caller's."""

    def __init__(self, kind: np.dtype[Any], sheet: Sheet | None = None, most: int = MOST) -> None:
        self.sheet = Sheet(kind) if sheet is None else sheet
        self._most = most
        self._filled = int(np.count_nonzero(self.sheet.rows["key"]))

    @property
    def rows(self) -> Records:
        """Another array after it grew: do not hold on to it."""
        return self.sheet.rows

    def find(self, keys: U64) -> I64:
        """The place of each key; -1: it is not known."""
        if not self.sheet.used:
            return np.full(len(keys), -1)
        places = self._places(keys)
        return np.where((self.rows["key"][places] == keys) & (keys > 0), places, -1)

    def claim(self, keys: U64) -> I64:
        """The place of each key. A record that was not known is all zeros but for its key; the caller fills it in."""
        if not len(keys):
            return np.zeros(0, np.int64)
        self._make_room(len(keys))
        places = self._places(keys)
        new = self.rows["key"][places] != keys
        self._filled += int(np.count_nonzero(self.rows["key"][places[new]] == 0))
        self.rows[places[new]] = 0
        self.rows["key"][places] = keys
        self.sheet.changed(places)
        return places

    def claim_one(self, key: int) -> tuple[int, bool]:
        """The same of one key; and whether it was known."""
        self._make_room(1)
        place = key & self.sheet.used - 1
        before = int(self.rows["key"][place])
        if before == key:
            return place, True
        self._filled += before == 0
        self.rows[place] = 0
        self.rows["key"][place] = key
        self.sheet.changed(np.array([place]))
        return place, False

    def _places(self, keys: U64) -> I64:
        return (keys & np.uint64(self.sheet.used - 1)).astype(np.int64)

    def _make_room(self, more: int) -> None:
        while CROWDED * (self._filled + more - 1) >= self.sheet.used and self.sheet.used < self._most:
            self._grow()

    def _grow(self) -> None:
        old = self.rows[: self.sheet.used].copy()
        places = min(max(FEWEST, 4 * len(old)), self._most)
        self.sheet.fit(places)
        self.rows[: len(old)] = 0
        known = old[old["key"] > 0]
        self.rows[self._places(known["key"])] = known
        self._filled = len(known)
        self.sheet.changed(np.arange(places))
