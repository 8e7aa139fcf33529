"""Duplicates: for each content, title, URL form and link text, the first page that had it.

All tables are bounded hash tables in which a newer key overwrites an older one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash

from crawlguide.core.kernels import part
from crawlguide.core.lossy_table import LossyTable

if TYPE_CHECKING:
    from crawlguide.core.notebook import Sheet
    from crawlguide.core.tables import U64

RECORD = np.dtype([("key", np.uint64), ("owner", np.uint64)])


class FirstOwners:
    """The first owner of each key, in memory alone, for kernels (see `owned_by_another`)."""

    def __init__(self, slots: int = 1 << 16) -> None:
        self.keys, self.owners = np.zeros(slots, np.uint64), np.zeros(slots, np.uint64)

    def known_of_another(self, key: U64, owner: U64) -> bool:
        """Whether another owner had the first of these keys before; nobody owns it by looking."""
        slot = key[0] & np.uint64(len(self.keys) - 1)
        return bool(self.keys[slot] == key[0] and self.owners[slot] != owner[0])


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
def owned_by_another(key, owner, keys, owners):  # type: ignore[no-untyped-def]
    """The same for the columns of `FirstOwners`."""
    slot = key & np.uint64(len(keys) - 1)
    if keys[slot] == key:
        return owners[slot] != owner
    keys[slot], owners[slot] = key, owner
    return False
