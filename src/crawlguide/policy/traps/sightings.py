"""What was met before, and with whom: bounded memory that forgets the older of two that claim one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash

if TYPE_CHECKING:
    from crawlguide.core.tables import I32, U64, Mask


class Sightings:
    """Each key with the first owner it was met with."""

    def __init__(self, places: int = 1 << 16) -> None:
        self._keys, self._owners = np.zeros(places, np.uint64), np.zeros(places, np.uint64)
        self._last = places - 1

    def met(self, text: str, owner: int) -> bool:
        """Was this met before with another owner? From now on it was met."""
        key = xxhash.xxh3_64_intdigest(text.encode())
        place = key & self._last
        if int(self._keys[place]) == key:
            return int(self._owners[place]) != owner
        self._keys[place], self._owners[place] = key, owner
        return False


class Numbers:
    """A number for each id, as far as it is remembered; looked up by the column."""

    def __init__(self, places: int = 1 << 16) -> None:
        self._ids, self._numbers = np.zeros(places, np.uint64), np.zeros(places, np.int32)
        self._last = np.uint64(places - 1)

    def find(self, ids: U64) -> tuple[I32, Mask]:
        """The number of each id, and whether it is known."""
        places = (ids & self._last).astype(np.intp)
        return self._numbers[places], self._ids[places] == ids

    def put(self, ids: U64, numbers: I32) -> None:
        places = (ids & self._last).astype(np.intp)
        self._ids[places], self._numbers[places] = ids, numbers
