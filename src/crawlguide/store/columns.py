"""What tables are built of: columns that grow in place, runs of slots, and numbers for names that are used again."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from crawlguide.core.kernels import part

Array = TypeVar("Array", bound="np.ndarray[Any, Any]")
STEP = 1 << 16


def grown(column: Array, length: int, fill: Any = None) -> Array:
    """The same array with room for `length` rows, new ones filled.

    Growing asks the allocator to extend the block (moving pages, not bytes, once it is large) by a bounded step,
    so no request ever pays for copying a whole frontier. Nobody may hold a view of a column across a call that grows.
    """
    old = len(column)
    if length <= old:
        return column
    column.resize(max(length, min(2 * old, old + STEP), 16), refcheck=False)
    if fill is not None:
        column[old:] = fill
    return column


class Names:
    """A number for each name; the number of a forgotten name serves a new one."""

    def __init__(self) -> None:
        self.number_of: dict[str, int] = {}
        self.names: list[str] = []  # by number; "" for one that is spare
        self._spare: list[int] = []

    def __len__(self) -> int:
        return len(self.number_of)

    @property
    def end(self) -> int:
        """Every number in use is smaller."""
        return len(self.names)

    def numbers(self) -> list[int]:
        """Those in use, in order."""
        return sorted(self.number_of.values())

    def find(self, name: str) -> int | None:
        return self.number_of.get(name)

    def add(self, name: str) -> int:
        """A number for a name that has none."""
        number = self._spare.pop() if self._spare else self.end
        self.put(name, number)
        return number

    def put(self, name: str, number: int) -> None:
        """The name is known by this number."""
        self.number_of[name] = number
        self.names += [""] * (number + 1 - len(self.names))
        self.names[number] = name

    def forget(self, name: str) -> None:
        number = self.number_of.pop(name)
        self.names[number] = ""
        self._spare.append(number)

    def close_gaps(self) -> None:
        """After `put`: numbers that no name has are for new names."""
        self._spare = [number for number in reversed(range(self.end)) if not self.names[number]]


# Runs of slots whose lengths are powers of two, cut from one column; a run given back serves the next taker.
#
# `free[order]` is the first free run of 2**order slots (-1: none); a free run's first slot holds the next one in its
# `item`. `used[0]` is the end of what was ever cut.

ORDERS = 40


@part
def take_run(slots, free, used, order):  # type: ignore[no-untyped-def]
    """The start of a run of 2**order slots, or -1 if the column must grow first."""
    start = free[order]
    if start >= 0:
        free[order] = slots[start].item
        return start
    start = used[0]
    if start + (1 << order) > len(slots):
        return -1
    used[0] = start + (1 << order)
    return start


@part
def free_run(slots, free, start, order):  # type: ignore[no-untyped-def]
    """Give a run back."""
    slots[start].item = free[order]
    free[order] = start
