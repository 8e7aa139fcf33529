"""Heaps of row numbers whose keys stay in the rows: four bytes a row, for queues that are read seldom.

WORST: the lowest priority first, of equals the one discovered last. LATER: the earliest due first, then by number.
A row is in at most one of the two (in LATER if it is due some time), so both share the column `place`.
"""

import numpy as np

from crawlguide.core.kernels import F64, I32, I64, kernel, nothing, one_f64, one_i64, part, records
from crawlguide.store.rows import ROW

WORST, LATER = 0, 1
TABLE = records(ROW)


@part
def before(table, order, a, b):
    if order == LATER:
        return table[a].due < table[b].due or (table[a].due == table[b].due and a < b)
    if table[a].priority == table[b].priority:
        return table[a].sequence > table[b].sequence
    return table[a].priority < table[b].priority


@part
def rise(table, order, heap, place, at):
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
def sink(table, order, heap, place, size, at):
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
def is_in(table, order, place, row):
    return place[row] >= 0 and (order == LATER) == (not np.isnan(table[row].due))


@kernel(nothing(TABLE, one_i64, I32, I64, I32, I32))
def push(table, order, heap, size, place, which):
    """Add rows that are in no heap."""
    for row in which:
        if place[row] < 0:
            heap[size[0]] = row
            size[0] += 1
            rise(table, order, heap, place, size[0] - 1)


@kernel(nothing(TABLE, one_i64, I32, I64, I32, I32))
def remove(table, order, heap, size, place, which):
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


@kernel(nothing(TABLE, one_i64, I32, I64, I32, I32, F64))
def rank(table, order, heap, size, place, which, priority):
    """Write new priorities one by one, each row finding its place before the next one changes."""
    for number in range(len(which)):
        row = which[number]
        table[row].priority = priority[number]
        if is_in(table, order, place, row):
            rise(table, order, heap, place, place[row])
            sink(table, order, heap, place, size[0], place[row])


@kernel(one_i64(TABLE, I32, I64, one_f64, I32))
def due_by(table, heap, size, at, found):
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
