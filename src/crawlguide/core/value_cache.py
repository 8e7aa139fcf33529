"""Numbers that were worked out before, by id, looked up by the column.

Bounded: of two ids that claim one place the older is forgotten, and its number has to be worked out again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import f64s, i64s, kernel, nothing, one_i64, u64s

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I64, U64


FEW = 1 << 10  # places to begin with: of very many crawls most know few URLs


class ValueCache:
    """`places`: so many at most, a power of two."""

    def __init__(self, places: int = 1 << 18) -> None:
        self._most, self._put = places, 0
        self._clear(min(FEW, places))

    def _clear(self, places: int) -> None:
        self._ids, self._numbers = np.zeros(places, np.uint64), np.zeros(places)

    def find(self, ids: U64) -> tuple[F64, I64]:
        """The number of each id, and the rows of those that are not known."""
        numbers, unknown = np.empty(len(ids)), np.empty(len(ids), np.int64)
        count = look_up(ids, self._ids, self._numbers, numbers, unknown)
        return numbers, unknown[:count]

    @property
    def table(self) -> tuple[U64, F64]:
        """Ids and numbers by place, for kernels that look them up while they do something else."""
        return self._ids, self._numbers

    def put(self, ids: U64, numbers: F64) -> None:
        self._put += len(ids)
        while len(self._ids) < min(2 * self._put, self._most):
            self._grow()
        write_down(ids, numbers, self._ids, self._numbers)

    def _grow(self) -> None:
        ids, numbers = self._ids, self._numbers
        known = np.flatnonzero(ids)
        self._clear(2 * len(ids))
        write_down(ids[known], numbers[known], self._ids, self._numbers)


@kernel(one_i64(u64s, u64s, f64s, f64s, i64s))
def look_up(ids, known, numbers, found, unknown):  # type: ignore[no-untyped-def]
    """Returns how many are not known."""
    count, last = 0, np.uint64(len(known) - 1)
    for row in range(len(ids)):
        place = ids[row] & last
        found[row] = numbers[place]
        if known[place] != ids[row]:
            unknown[count] = row
            count += 1
    return count


@kernel(nothing(u64s, f64s, u64s, f64s))
def write_down(ids, given, known, numbers):  # type: ignore[no-untyped-def]
    last = np.uint64(len(known) - 1)
    for row in range(len(ids)):
        place = ids[row] & last
        known[place], numbers[place] = ids[row], given[row]
