"""Exact priority queues, many over one set of items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.store.columns import grown
from crawlguide.store.kernels import heaps as kernels
from crawlguide.store.kernels.runs import ORDERS

if TYPE_CHECKING:
    from crawlguide.core.types import F64, I32, I64


class Heaps:
    """One heap for each group; an item is in at most one. Largest key first, smallest tie among equals."""

    def __init__(self) -> None:
        self.key: F64 = np.zeros(0)
        self.tie: I64 = np.zeros(0, np.int64)
        self.place: I32 = np.zeros(0, np.int32)
        self.group: I32 = np.zeros(0, np.int32)
        self.slots: I32 = np.zeros(0, np.int32)
        self.starts: I64 = np.zeros(0, np.int64)
        self.sizes: I32 = np.zeros(0, np.int32)
        self._orders: I32 = np.zeros(0, np.int32)
        self._free = np.full(ORDERS, -1, np.int64)
        self._used = np.zeros(1, np.int64)

    def fit(self, items: int, groups: int) -> None:
        """Make room for items and groups numbered below these."""
        if items > len(self.key):
            self.key, self.tie = grown(self.key, items), grown(self.tie, items)
            self.place, self.group = grown(self.place, items, -1), grown(self.group, items)
        if groups > len(self.sizes):
            self.starts, self.sizes = grown(self.starts, groups), grown(self.sizes, groups)
            self._orders = grown(self._orders, groups, -1)

    def push(self, items: I32, groups: I32, keys: F64, ties: I64) -> None:
        """Queue items; one that is queued already stays where it is."""
        done = 0
        while done < len(items):
            done = kernels.push(
                items, groups, keys, ties, done, self.key, self.tie, self.place, self.group, self.slots,
                self.starts, self.sizes, self._orders, self._free, self._used,
            )  # fmt: skip
            if done < len(items):
                self.slots = grown(self.slots, int(self._used[0]) + (2 << max(0, int(self._orders[groups[done]]))))

    def remove(self, items: I32) -> None:
        kernels.remove(items, self.key, self.tie, self.place, self.group, self.slots, self.starts, self.sizes)

    def rekey(self, items: I32, keys: F64, ties: I64) -> None:
        kernels.rekey(
            items, keys, ties, self.key, self.tie, self.place, self.group, self.slots, self.starts, self.sizes
        )

    def heads(self, groups: I32) -> I32:
        """The best item of each group; none of them may be empty."""
        return self.slots[self.starts[groups]]

    def not_below(self, group: int, floor: float, most: int) -> I32:
        """Up to `most` items of a group whose key is at least `floor`, in any order."""
        found = np.empty(most, np.int32)
        count = kernels.not_below(found, group, floor, self.key, self.slots, self.starts, self.sizes)
        return found[:count]
