"""Heaps in two tiers: items in groups, and the groups themselves ordered by their best item."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.store.heaps import Heaps
from crawlguide.store.kernels import tiers as kernels
from crawlguide.store.kernels.tiers import OPEN, SHUT

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I32, I64


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

    def load(self, items: I32, groups: I32, keys: F64, ties: I64) -> None:
        """Queue many items where there are none."""
        self.inner.load(items, groups, keys, ties)
        self._settle(np.unique(groups))

    def remove(self, items: I32) -> None:
        """Items in no heap are left alone."""
        groups = self._groups_of(items)
        self.inner.remove(items)
        self._settle(groups)

    def rekey(self, items: I32, keys: F64) -> None:
        """Items in no heap are left alone."""
        self.inner.rekey(items, keys)
        self._settle(self._groups_of(items))

    def shut(self, groups: I32, until: F64) -> None:
        """Keep groups out of the best until the given instants."""
        self.outer.remove(groups)
        held = self.inner.groups["size"][groups] > 0
        groups, until = groups[held], until[held]
        self.outer.push(groups, np.full(len(groups), SHUT, np.int32), -until, groups.astype(np.int64))

    def open(self, groups: I32) -> None:
        """Let groups in again."""
        self.outer.remove(groups)
        self._settle(groups)

    def open_until(self, at: float, most: int) -> None:
        """Let in every group whose time has come."""
        first = self.next_opening()
        if first is not None and first <= at:
            self.open(self.outer.not_below(SHUT, -at, most))

    def next_opening(self) -> float | None:
        """When the first shut group opens; None if none is shut."""
        first = self.outer.first(SHUT)
        return None if first is None else -first[0]

    def any_open(self) -> bool:
        return self.outer.size(OPEN) > 0

    def _groups_of(self, items: I32) -> I32:
        return self.inner.items["group"][items]

    def _settle(self, groups: I32) -> None:
        """Bring the outer tier in line with what the inner heaps of these groups now hold."""
        inner, outer, done = self.inner, self.outer, 0
        while done < len(groups):
            done = kernels.settle(
                inner.slots, inner.groups, outer.slots, outer.groups, outer.items, outer.free, outer.used, groups, done
            )
            if done < len(groups):
                outer.widen(OPEN)
