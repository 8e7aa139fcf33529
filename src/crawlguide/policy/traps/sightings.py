"""What was met before, and with whom: bounded memory that forgets the older of two that claim one place."""

from __future__ import annotations

import numpy as np
import xxhash

from crawlguide.core.notebook import Sheet


class Sightings:
    """Each key with the first owner it was met with."""

    def __init__(self, places: int = 1 << 16) -> None:
        self.keys, self.owners = np.zeros(places, np.uint64), np.zeros(places, np.uint64)
        self._last = places - 1

    def met(self, text: str, owner: int) -> bool:
        """Was this met before with another owner? From now on it was met."""
        key = xxhash.xxh3_64_intdigest(text.encode())
        place = key & self._last
        if int(self.keys[place]) == key:
            return int(self.owners[place]) != owner
        self.keys[place], self.owners[place] = key, owner
        return False


RECORD = np.dtype([("key", np.uint64), ("owner", np.uint64)])
FEWEST, MOST = 1 << 10, 1 << 16


class KeptSightings:
    """The same in a sheet that is kept; it grows as it fills."""

    def __init__(self, sheet: Sheet | None = None) -> None:
        self.sheet = Sheet(RECORD) if sheet is None else sheet
        self._filled = int(np.count_nonzero(self.sheet.rows["key"]))

    def met(self, text: str, owner: int) -> bool:
        """Was this met before with another owner? From now on it was met."""
        if 4 * self._filled >= self.sheet.used and self.sheet.used < MOST:
            self._grow()
        key, rows = xxhash.xxh3_64_intdigest(text.encode()), self.sheet.rows
        place = key & self.sheet.used - 1
        if int(rows["key"][place]) == key:
            return int(rows["owner"][place]) != owner
        self._filled += rows["key"][place] == 0
        rows[place] = key, owner
        self.sheet.changed(np.array([place]))
        return False

    def _grow(self) -> None:
        old = self.sheet.rows[: self.sheet.used].copy()
        places = max(FEWEST, 4 * len(old))
        self.sheet.fit(places)
        self.sheet.rows[: len(old)] = 0
        known = old[old["key"] > 0]
        self.sheet.rows[(known["key"] & np.uint64(places - 1)).astype(np.int64)] = known
        self.sheet.changed(np.arange(places))
