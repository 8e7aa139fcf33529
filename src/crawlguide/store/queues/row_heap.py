"""Heaps of row numbers whose keys stay in the rows: four bytes a row, for queues that are seldom read.

WORST: the lowest priority first, of equals the one discovered last. LATER: the earliest due first, then by number.
A row is in at most one of the two (in LATER if it is due some time), so both share the column `place`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core.kernels import f64s, i32s, i64s, kernel, nothing, one_f64, one_i64, part, records
from crawlguide.store.columns import grown
from crawlguide.store.tables.rows import ROW

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I32

WORST, LATER = 0, 1
TABLE = records(ROW)


class RowHeap:
    """One of the two heaps over a table; `place` is the column they share."""

    def __init__(self, table: np.ndarray[Any, Any], place: I32, order: int) -> None:
        self._table, self._place, self._order = table, place, order
        self._rows: I32 = np.zeros(0, np.int32)
        self._size = np.zeros(1, np.int64)

    def __len__(self) -> int:
        return int(self._size[0])

    def push(self, rows: I32) -> None:
        """Add rows; one that is in either heap already stays where it is."""
        self._rows = grown(self._rows, len(self) + len(rows))
        push(self._table, self._order, self._rows, self._size, self._place, rows)

    def remove(self, rows: I32) -> None:
        remove(self._table, self._order, self._rows, self._size, self._place, rows)

    def rank(self, rows: I32, priority: F64) -> None:
        """Write new priorities into the rows, wherever they are."""
        rank(self._table, self._order, self._rows, self._size, self._place, rows, priority)

    def first(self) -> int | None:
        return int(self._rows[0]) if len(self) else None

    def due(self, at: float, most: int) -> I32:
        """Up to `most` rows that are due by `at`, in any order."""
        rows = np.empty(most, np.int32)
        count = due_by(self._table, self._rows, self._size, at, rows)
        return rows[:count]


@part
def before(table, order, a, b):  # type: ignore[no-untyped-def]
    if order == LATER:
        return table[a].due < table[b].due or (table[a].due == table[b].due and a < b)
    if table[a].priority == table[b].priority:
        return table[a].sequence > table[b].sequence
    return table[a].priority < table[b].priority


@part
def rise(table, order, heap, place, at):  # type: ignore[no-untyped-def]
    row = heap[at]
    while at > 0:
        above = (at - 1) >> 1
        if not before(table, order, row, heap[above]):
            break
        heap[at] = heap[above]
        place[heap[at]] = at
        at = above
    heap[at] = row
    place[row] = at


@part
def sink(table, order, heap, place, size, at):  # type: ignore[no-untyped-def]
    row = heap[at]
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and before(table, order, heap[below + 1], heap[below]):
            below += 1
        if not before(table, order, heap[below], row):
            break
        heap[at] = heap[below]
        place[heap[at]] = at
        at = below
    heap[at] = row
    place[row] = at


@part
def is_in(table, order, place, row):  # type: ignore[no-untyped-def]
    return place[row] >= 0 and (order == LATER) == (not np.isnan(table[row].due))


@kernel(nothing(TABLE, one_i64, i32s, i64s, i32s, i32s))
def push(table, order, heap, size, place, which):  # type: ignore[no-untyped-def]
    """Add rows that are in no heap."""
    for row in which:
        if place[row] < 0:
            heap[size[0]] = row
            size[0] += 1
            rise(table, order, heap, place, size[0] - 1)


@kernel(nothing(TABLE, one_i64, i32s, i64s, i32s, i32s))
def remove(table, order, heap, size, place, which):  # type: ignore[no-untyped-def]
    """Take rows out; those in another heap or in none are left alone. Out of LATER means due no more."""
    for row in which:
        if not is_in(table, order, place, row):
            continue
        at, last = place[row], size[0] - 1
        size[0] = last
        place[row] = -1
        if at < last:
            heap[at] = heap[last]
            place[heap[at]] = at
            rise(table, order, heap, place, at)
            sink(table, order, heap, place, last, place[heap[at]])
        if order == LATER:
            table[row].due = np.nan


@kernel(nothing(TABLE, one_i64, i32s, i64s, i32s, i32s, f64s))
def rank(table, order, heap, size, place, which, priority):  # type: ignore[no-untyped-def]
    """Write new priorities one by one, each row finding its place before the next one changes."""
    for number in range(len(which)):
        row = which[number]
        table[row].priority = priority[number]
        if is_in(table, order, place, row):
            rise(table, order, heap, place, place[row])
            sink(table, order, heap, place, size[0], place[row])


@kernel(one_i64(TABLE, i32s, i64s, one_f64, i32s))
def due_by(table, heap, size, at, found):  # type: ignore[no-untyped-def]
    """Rows of LATER that are due, in any order, as many as `found` holds; O(found)."""
    places = np.zeros(len(found) + 1, np.int64)
    count, looked = 0, 0
    if size[0] > 0 and table[heap[0]].due <= at and len(found) > 0:
        found[0] = heap[0]
        count = 1
    while looked < count:
        here = places[looked]
        looked += 1
        for below in range(2 * here + 1, min(2 * here + 3, size[0])):
            if count < len(found) and table[heap[below]].due <= at:
                found[count] = heap[below]
                places[count] = below
                count += 1
    return count
