"""What was met before, and with whom: bounded memory that forgets the older of two that claim one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash

from crawlguide.core.places import Places

if TYPE_CHECKING:
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


class KeptSightings:
    """The same in a sheet that is kept; it grows as it fills."""

    def __init__(self, sheet: Sheet | None = None) -> None:
        self._places = Places(RECORD, sheet)
        self.sheet = self._places.sheet

    def met(self, text: str, owner: int) -> bool:
        """Was this met before with another owner? From now on it was met."""
        place, known = self._places.claim_one(xxhash.xxh3_64_intdigest(text.encode()))
        if known:
            return int(self._places.rows["owner"][place]) != owner
        self._places.rows["owner"][place] = owner
        return False
