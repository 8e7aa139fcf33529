"""Operations on columns that several rooms share. Those on ids are kernels: numpy's own are several times slower."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crawlguide.core.kernels import bools, f64s, i64s, kernel, nothing, one_f64, one_i64, part, u64s

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from crawlguide.core.tables import F64, I64, U8, U64, Mask, Text


def texts(values: Iterable[Any]) -> Text:
    """A column of Python objects, which numpy must not look into."""
    listed = values if isinstance(values, list) else list(values)
    column = np.empty(len(listed), object)
    column[:] = listed
    return column


class Coded(NamedTuple):
    """Texts as bytes for a kernel, one after another, and where each ends."""

    letters: U8
    ends: I64
    ascii: bool  # all of them


def coded(column: Sequence[str]) -> Coded:
    """Texts as bytes. If all are ASCII, as most are, they are encoded in one go."""
    whole = "".join(column)
    is_ascii = whole.isascii()
    sizes = map(len, column if is_ascii else [text.encode() for text in column])
    ends = np.fromiter(accumulate(sizes), np.int64, len(column))
    return Coded(np.frombuffer(whole.encode() or b"\0", np.uint8), ends, is_ascii)


def rank_within(groups: I64) -> I64:
    """How many earlier rows are of the same group: [7, 7, 9, 7] -> [0, 1, 0, 2]. Groups are small numbers."""
    ranks = np.empty(len(groups), np.int64)
    count_within(groups, ranks)
    return ranks


@kernel(nothing(i64s, i64s))
def count_within(groups, ranks):  # type: ignore[no-untyped-def]
    most = 0
    for group in groups:
        most = max(most, group)
    seen = np.zeros(most + 1, np.int64)
    for row in range(len(groups)):
        ranks[row] = seen[groups[row]]
        seen[groups[row]] += 1


def first_of_each(ids: U64) -> Mask:
    """True for the first row of each id."""
    first = np.zeros(len(ids), np.bool_)
    first[numbered(ids)[1]] = True
    return first


def distinct(ids: U64) -> U64:
    """Each id once, the smallest first."""
    found, first = np.sort(ids), np.ones(len(ids), np.bool_)
    first[1:] = found[1:] != found[:-1]
    return found[first]


def numbered(ids: U64) -> tuple[I64, I64]:
    """Ids numbered from 0 in the order in which they first occur; and the first row of each number."""
    numbers, first = np.empty(len(ids), np.int64), np.empty(len(ids), np.int64)
    count = number_each(np.ascontiguousarray(ids), numbers, first)
    return numbers, first[:count]


def changed(ids: U64, now: F64, before: F64, share: float) -> tuple[U64, F64]:
    """The ids for which |now − before| > share · (now + before); and their numbers now."""
    found, numbers = np.empty(len(ids), np.uint64), np.empty(len(ids))
    count = pick_changed(ids, now, before, share, found, numbers)
    return found[:count], numbers[:count]


def within(rows: I64, count: int) -> bool:
    """Whether all of these are row numbers from 0 to `count` − 1."""
    return not count_outside(np.ascontiguousarray(rows, np.int64), count)


def among(ids: U64, wanted: U64) -> Mask:
    """True for each id that is one of those wanted."""
    found = np.empty(len(ids), np.bool_)
    mark_among(ids, wanted, found)
    return found


@kernel(one_i64(i64s, one_i64))
def count_outside(rows, count):  # type: ignore[no-untyped-def]
    outside = 0
    for row in rows:
        outside += row < 0 or row >= count
    return outside


@part
def slots_for(count):  # type: ignore[no-untyped-def]
    """The size of a hash table that is at most half full with `count` keys: a power of two."""
    slots = 16
    while slots < 2 * count:
        slots *= 2
    return slots


@kernel(nothing(u64s, u64s, bools))
def mark_among(ids, wanted, found):  # type: ignore[no-untyped-def]
    """By a hash table of the rows of `wanted`, made for this call."""
    table = np.full(slots_for(len(wanted)), -1, np.int64)
    last = np.uint64(len(table) - 1)
    for row in range(len(wanted)):
        at = wanted[row] & last
        while table[at] >= 0:
            at = (at + np.uint64(1)) & last
        table[at] = row
    for row in range(len(ids)):
        at = ids[row] & last
        while table[at] >= 0 and wanted[table[at]] != ids[row]:
            at = (at + np.uint64(1)) & last
        found[row] = table[at] >= 0


@kernel(one_i64(u64s, i64s, i64s))
def number_each(ids, numbers, first):  # type: ignore[no-untyped-def]
    """By a hash table of numbers, made for this call; returns how many ids differ."""
    table, count = np.full(slots_for(len(ids)), -1, np.int64), 0
    last = np.uint64(len(table) - 1)
    for row in range(len(ids)):
        at = ids[row] & last
        while table[at] >= 0 and ids[first[table[at]]] != ids[row]:
            at = (at + np.uint64(1)) & last
        if table[at] < 0:
            table[at], first[count] = count, row
            count += 1
        numbers[row] = table[at]
    return count


@kernel(one_i64(u64s, f64s, f64s, one_f64, u64s, f64s))
def pick_changed(ids, now, before, share, found, numbers):  # type: ignore[no-untyped-def]
    """Returns how many they are."""
    count = 0
    for row in range(len(ids)):
        if abs(now[row] - before[row]) > share * (now[row] + before[row]):
            found[count], numbers[count] = ids[row], now[row]
            count += 1
    return count
