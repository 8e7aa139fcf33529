"""Columns that grow in place."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from crawlguide.core.kernels import i32s, i64s, kernel, nothing, one_f64, one_i64, part, records
from crawlguide.store.tables.rows import FREE, HOST, ROW

Array = TypeVar("Array", bound="np.ndarray[Any, Any]")
STEP = 1 << 16


def grown(column: Array, length: int, fill: Any = None) -> Array:
    """The same column with room for `length` rows, new ones filled.

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
def give_run(slots, free, start, order):  # type: ignore[no-untyped-def]
    slots[start].item = free[order]
    free[order] = start


# Rows that nothing is known of yet.

DEEPEST = np.iinfo(np.int16).max


@kernel(nothing(i64s, i32s, one_i64, one_f64, records(ROW), records(HOST)))
def clear(rows, hosts, sequence, at, table, host_rows):  # type: ignore[no-untyped-def]
    """Number the rows from `sequence` on; they belong to no state yet, and nothing leads to them."""
    for number in range(len(rows)):
        row = table[rows[number]]
        host_rows[hosts[number]].urls += 1
        row.sequence, row.discovered, row.host, row.state = sequence + number, at, hosts[number], FREE
        row.fetched, row.due, row.relevance, row.given = np.nan, np.nan, np.nan, np.nan
        row.priority, row.parent_sum, row.parent_best = 0.0, 0.0, 0.0
        row.newest_in, row.arm, row.max_depth, row.stamp = 0, -1, -1, -1
        row.outs, row.parents, row.status, row.tries = 0, 0, 0, 0
        row.counted, row.noted, row.reason = 0, 0, 0
        row.depth = DEEPEST
