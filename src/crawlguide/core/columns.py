"""Column arithmetic that several stages share."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crawlguide.core.kernels import bools, f64s, i64s, kernel, nothing, one_f64, one_i64, u64s

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from crawlguide.core.tables import F64, I64, U8, U64, Mask, Text


def texts(values: Iterable[Any]) -> Text:
    """A column of Python objects; numpy must not look inside them."""
    listed = values if isinstance(values, list) else list(values)
    column = np.empty(len(listed), object)
    column[:] = listed
    return column


class Coded(NamedTuple):
    """Texts as bytes, one behind the other, and where each ends."""

    letters: U8
    ends: I64
    ascii: bool  # all of them


def coded(column: Sequence[str]) -> Coded:
    """Texts for a kernel. Most are ASCII: then nothing is done for each of them but counting."""
    whole = "".join(column)
    plain = whole.isascii()
    sizes = map(len, column if plain else [text.encode() for text in column])
    ends = np.fromiter(accumulate(sizes), np.int64, len(column))
    return Coded(np.frombuffer(whole.encode() or b"\0", np.uint8), ends, plain)


def rank_within(groups: I64) -> I64:
    """Place of each row among the earlier rows of its group: [7, 7, 9, 7] -> [0, 1, 0, 2]. Groups are small numbers."""
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
    first = np.empty(len(ids), np.bool_)
    mark_first(ids, first)
    return first


def distinct(ids: U64) -> U64:
    """Each id once, the smallest first. numpy's `unique` hashes: ten times as long for a thousand."""
    found, first = np.sort(ids), np.ones(len(ids), np.bool_)
    first[1:] = found[1:] != found[:-1]
    return found[first]


def numbered(ids: U64) -> tuple[I64, I64]:
    """A number for each id, the same for equal ones, in the order in which they come; and the first row of each."""
    numbers, first = np.empty(len(ids), np.int64), np.empty(len(ids), np.int64)
    count = number_each(np.ascontiguousarray(ids), numbers, first)
    return numbers, first[:count]


def changed(ids: U64, now: F64, before: F64, share: float) -> tuple[U64, F64]:
    """The ids whose number has changed by more than this share of what it is and was together; and what it is now."""
    found, numbers = np.empty(len(ids), np.uint64), np.empty(len(ids))
    count = pick_changed(ids, now, before, share, found, numbers)
    return found[:count], numbers[:count]


def within(rows: I64, count: int) -> bool:
    """Whether all of these are numbers of the first `count` rows."""
    return not count_outside(np.ascontiguousarray(rows, np.int64), count)


def among(ids: U64, wanted: U64) -> Mask:
    """True for each id that is one of those wanted. numpy's `isin` sorts: ten times as long for a few."""
    found = np.empty(len(ids), np.bool_)
    mark_among(ids, wanted, found)
    return found


@kernel(one_i64(i64s, one_i64))
def count_outside(rows, count):  # type: ignore[no-untyped-def]
    outside = 0
    for row in rows:
        outside += row < 0 or row >= count
    return outside


@kernel(nothing(u64s, u64s, bools))
def mark_among(ids, wanted, found):  # type: ignore[no-untyped-def]
    """A throw-away hash table, never more than half full."""
    room = 16
    while room < 2 * len(wanted):
        room *= 2
    last = np.uint64(room - 1)
    table = np.full(room, -1, np.int64)
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


@kernel(nothing(u64s, bools))
def mark_first(ids, first):  # type: ignore[no-untyped-def]
    """A throw-away hash table, never more than half full."""
    room = 16
    while room < 2 * len(ids):
        room *= 2
    table = np.full(room, -1, np.int64)
    for row in range(len(ids)):
        at = ids[row] & np.uint64(room - 1)
        while table[at] >= 0 and ids[table[at]] != ids[row]:
            at = (at + np.uint64(1)) & np.uint64(room - 1)
        first[row] = table[at] < 0
        if first[row]:
            table[at] = row


@kernel(one_i64(u64s, i64s, i64s))
def number_each(ids, numbers, first):  # type: ignore[no-untyped-def]
    """A throw-away hash table, never more than half full; returns how many differ."""
    room, count = 16, 0
    while room < 2 * len(ids):
        room *= 2
    table = np.full(room, -1, np.int64)
    for row in range(len(ids)):
        at = ids[row] & np.uint64(room - 1)
        while table[at] >= 0 and ids[first[table[at]]] != ids[row]:
            at = (at + np.uint64(1)) & np.uint64(room - 1)
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
