"""Exact priority queues, many over one set of items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.store.columns import grown
from crawlguide.store.kernels import heaps as kernels
from crawlguide.store.kernels.runs import ORDERS

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I32, I64


class Heaps:
    """One heap for each group; an item is in at most one. Largest key first, smallest tie among equals."""

    def __init__(self) -> None:
        self.slots = np.zeros(0, kernels.SLOT)
        self.groups = np.zeros(0, kernels.GROUP)
        self.items = np.zeros(0, kernels.ITEM)
        self.free = np.full(ORDERS, -1, np.int64)
        self.used = np.zeros(1, np.int64)

    def fit(self, items: int, groups: int) -> None:
        """Make room for items and groups numbered below these."""
        self.items = grown(self.items, items, (-1, 0))
        self.groups = grown(self.groups, groups, (0, 0, -1))

    def push(self, items: I32, groups: I32, keys: F64, ties: I64) -> None:
        """Queue items; one that is queued already stays where it is."""
        done = 0
        while done < len(items):
            done = kernels.push(
                self.slots, self.groups, self.items, self.free, self.used, items, groups, keys, ties, done
            )
            if done < len(items):
                self.widen(int(groups[done]))

    def load(self, items: I32, groups: I32, keys: F64, ties: I64) -> None:
        """Queue many items in heaps that are empty."""
        kernels.give_room(self.groups, np.bincount(groups, minlength=len(self.groups)), self.used)
        self.slots = grown(self.slots, int(self.used[0]))
        self.push(items, groups, keys, ties)

    def widen(self, group: int) -> None:
        """Room for a run twice as long as the group has."""
        order = int(self.groups["order"][group])
        self.slots = grown(self.slots, int(self.used[0]) + (2 << max(0, order)))

    def remove(self, items: I32) -> None:
        """Items in no heap are left alone."""
        kernels.remove(self.slots, self.groups, self.items, items)

    def rekey(self, items: I32, keys: F64) -> None:
        """Items in no heap are left alone."""
        kernels.rekey(self.slots, self.groups, self.items, items, keys)

    def size(self, group: int) -> int:
        return int(self.groups["size"][group])

    def first(self, group: int) -> tuple[float, int] | None:
        """The key and the number of a group's best item; None if it is empty."""
        if not self.groups["size"][group]:
            return None
        slot = self.slots[self.groups["start"][group]]
        return float(slot["key"]), int(slot["item"])

    def top(self, group: int, most: int) -> I32:
        """Up to `most` good items of a group: the top of its heap, the best first and the others in any order."""
        start = int(self.groups["start"][group])
        found: I32 = self.slots["item"][start : start + min(self.size(group), most)].astype(np.int32)
        return found

    def not_below(self, group: int, floor: float, most: int) -> I32:
        """Up to `most` items of a group whose key is at least `floor`, in any order."""
        found = np.empty(most, np.int32)
        count = kernels.not_below(self.slots, self.groups, group, floor, found)
        return found[:count]
