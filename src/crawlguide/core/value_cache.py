"""A cache of one number per URL id, read and written a whole column at a time.

It is direct-mapped and bounded: each id has exactly one slot, and a newer id overwrites an older one there. An id that
was overwritten is a miss, and its number has to be computed again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import f64s, i64s, kernel, nothing, one_i64, u64s

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I64, U64


FIRST_SLOTS = 1 << 10  # of a new cache: where there are very many crawls, most have few URLs


class ValueCache:
    """Grows with what is put into it, up to `most_slots`, which is a power of two."""

    def __init__(self, most_slots: int = 1 << 18) -> None:
        self._most_slots, self._puts = most_slots, 0
        self._clear(min(FIRST_SLOTS, most_slots))

    def get(self, ids: U64) -> tuple[F64, I64]:
        """The cached number of each id, and the rows that are misses; their numbers mean nothing."""
        values, misses = np.empty(len(ids)), np.empty(len(ids), np.int64)
        count = look_up(ids, self._ids, self._values, values, misses)
        return values, misses[:count]

    def put(self, ids: U64, values: F64) -> None:
        self._puts += len(ids)
        while len(self._ids) < min(2 * self._puts, self._most_slots):
            self._grow()
        write(ids, values, self._ids, self._values)

    @property
    def slots(self) -> tuple[U64, F64]:
        """Ids and numbers by slot, for kernels that look them up while they do something else."""
        return self._ids, self._values

    def _clear(self, slots: int) -> None:
        self._ids, self._values = np.zeros(slots, np.uint64), np.zeros(slots)

    def _grow(self) -> None:
        ids, values = self._ids, self._values
        used = np.flatnonzero(ids)
        self._clear(2 * len(ids))
        write(ids[used], values[used], self._ids, self._values)


@kernel(one_i64(u64s, u64s, f64s, f64s, i64s))
def look_up(ids, slot_ids, slot_values, values, misses):  # type: ignore[no-untyped-def]
    """Returns how many misses there are."""
    count, last = 0, np.uint64(len(slot_ids) - 1)
    for row in range(len(ids)):
        slot = ids[row] & last
        values[row] = slot_values[slot]
        if slot_ids[slot] != ids[row]:
            misses[count] = row
            count += 1
    return count


@kernel(nothing(u64s, f64s, u64s, f64s))
def write(ids, values, slot_ids, slot_values):  # type: ignore[no-untyped-def]
    last = np.uint64(len(slot_ids) - 1)
    for row in range(len(ids)):
        slot = ids[row] & last
        slot_ids[slot], slot_values[slot] = ids[row], values[row]
