"""Marks that fade: what was met lately. Bounded, so it may fade sooner; whoever asks must not mind meeting it twice."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from crawlguide.core.bounded import Bounded

if TYPE_CHECKING:
    from collections.abc import Hashable


@dataclass
class Marks:
    most: int
    fade_s: float

    def __post_init__(self) -> None:
        self._marked: Bounded[Hashable, float] = Bounded(self.most)

    def add(self, key: Hashable, at: float) -> bool:
        """Mark it; True if it bore no mark, or an old one."""
        while self._marked and next(iter(self._marked.values())) <= at - self.fade_s:
            self._marked.popitem(last=False)
        if key in self._marked:
            return False
        self._marked[key] = at
        return True

    def has(self, key: Hashable, at: float) -> bool:
        """Whether it bears a mark that is not old."""
        return self._marked.get(key, -inf) > at - self.fade_s

    def __len__(self) -> int:
        return len(self._marked)
