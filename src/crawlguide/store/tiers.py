"""Heaps in two tiers: items in groups, and the groups themselves ordered by their best item."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.store.heaps import Heaps

if TYPE_CHECKING:
    from crawlguide.core.types import F64, I32, I64

OPEN, SHUT = 0, 1


class Tiers:
    """Groups are OPEN, ordered by the key of their best item, or SHUT, ordered by when they open again."""

    def __init__(self) -> None:
        self.inner = Heaps()
        self.outer = Heaps()
        self.outer.fit(0, 2)

    def fit(self, items: int, groups: int) -> None:
        self.inner.fit(items, groups)
        self.outer.fit(groups, 2)

    def push(self, items: I32, groups: I32, keys: F64, ties: I64) -> None:
        self.inner.push(items, groups, keys, ties)
        self._settle(groups)

    def remove(self, items: I32) -> None:
        """Items in no heap are left alone."""
        groups = self.inner.group[items]
        self.inner.remove(items)
        self._settle(groups)

    def rekey(self, items: I32, keys: F64) -> None:
        self.inner.rekey(items, keys, self.inner.tie[items])
        self._settle(self.inner.group[items])

    def shut(self, groups: I32, until: F64) -> None:
        """Keep groups out of the best until the given instants."""
        self.outer.remove(groups)
        some = groups[self.inner.sizes[groups] > 0]
        self.outer.push(some, np.full(len(some), SHUT, np.int32), -until[self.inner.sizes[groups] > 0], some.astype(np.int64))

    def open(self, groups: I32) -> None:
        """Let groups in again."""
        self.outer.remove(groups)
        self._settle(groups)

    def open_until(self, at: float, most: int) -> None:
        """Let in every group whose time has come."""
        due = self.outer.not_below(SHUT, -at, most)
        if len(due):
            self.open(due)

    def next_opening(self) -> float | None:
        """When the first shut group opens; None if none is shut."""
        if not self.outer.sizes[SHUT]:
            return None
        return -float(self.outer.key[self.outer.slots[self.outer.starts[SHUT]]])

    def head(self) -> int:
        """The best item of all open groups, -1 if there is none."""
        if not self.outer.sizes[OPEN]:
            return -1
        return int(self.inner.slots[self.inner.starts[self.outer.slots[self.outer.starts[OPEN]]]])

    def _settle(self, groups: I32) -> None:
        """Bring the outer tier in line with what the inner heaps of these groups now hold."""
        empty = self.inner.sizes[groups] == 0
        if empty.any():
            self.outer.remove(groups[empty])
            groups = groups[~empty]
        shut = (self.outer.place[groups] >= 0) & (self.outer.group[groups] == SHUT)
        if shut.any():
            groups = groups[~shut]
        if not len(groups):
            return
        heads = self.inner.heads(groups)
        keys, ties = self.inner.key[heads], self.inner.tie[heads]
        self.outer.rekey(groups, keys, ties)
        self.outer.push(groups, np.zeros(len(groups), np.int32), keys, ties)
