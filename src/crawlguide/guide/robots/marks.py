"""Marks that fade: what was met lately. Bounded, so it may fade sooner; whoever asks must not mind meeting it twice."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable


@dataclass
class Marks:
    most: int
    fade_s: float
    _marked: OrderedDict[Hashable, float] = field(default_factory=OrderedDict)

    def add(self, key: Hashable, at: float) -> bool:
        """Mark it; True if it bore no mark, or an old one."""
        while self._marked and next(iter(self._marked.values())) <= at - self.fade_s:
            self._marked.popitem(last=False)
        if key in self._marked:
            return False
        self._marked[key] = at
        if len(self._marked) > self.most:
            self._marked.popitem(last=False)
        return True

    def __len__(self) -> int:
        return len(self._marked)
