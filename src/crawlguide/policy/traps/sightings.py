"""What was met before, and with whom: bounded memory that forgets the older of two that claim one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xxhash

from crawlguide.policy.traps import kernels

if TYPE_CHECKING:
    from crawlguide.core.tables import I64, U64, Mask


class Linked(NamedTuple):
    """Links as columns: the row of their page, whether they stay on its host, hashes of their part of the host and of
    the words they stand under (0: none), their ids; the part of each page; and links that were refused on sight.
    """

    parent: I64
    local: Mask
    part: U64
    words: U64
    id: U64
    own: U64
    refused: Mask


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

    def all_met(self, keys: U64, owners: U64) -> Mask:
        """The same for a column of hashes, one after the other."""
        met = np.empty(len(keys), np.bool_)
        kernels.meet(keys, owners, self._keys, self._owners, met)
        return met

    def spread(self, links: Linked, counts: I64) -> None:
        """Count for each page how many links echo, lead further inside, and elsewhere (see `lessons.py`)."""
        kernels.spread(*links, self._keys, self._owners, counts)
