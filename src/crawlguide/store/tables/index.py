"""From a 64-bit id to its row: open addressing in 256 shards, each a run of slots that doubles by itself.

One shard holds 1/256 of the ids, so growing costs a fraction of a millisecond even at millions of rows, and never
all at once. A slot holds a row number, -1 (never used) or -2 (was used).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import i32s, i64s, kernel, nothing, one_i64, part, records, u64s
from crawlguide.store.columns import ORDERS, free_run, grown, take_run

if TYPE_CHECKING:
    from crawlguide.core.tables import I64, U64

SHARDS = 256
SLOT = np.dtype([("item", np.int32)])
SLOTS = records(SLOT)


class Index:
    """A growing hash index; rows of forgotten URLs are used again."""

    def __init__(self) -> None:
        self.ids: U64 = np.zeros(0, np.uint64)
        self._slots = np.zeros(0, SLOT)
        self._starts = np.zeros(SHARDS, np.int64)
        self._orders = np.full(SHARDS, -1, np.int32)
        self._filled = np.zeros(SHARDS, np.int32)
        self._free = np.full(ORDERS, -1, np.int64)
        self._used = np.zeros(1, np.int64)
        self._spare: list[int] = []
        self.rows = 0  # every row in use has a smaller number

    @property
    def live(self) -> int:
        """How many ids are known."""
        return self.rows - len(self._spare)

    def find(self, ids: U64) -> I64:
        """The row of each id, -1 where it is unknown."""
        rows = np.empty(len(ids), np.int64)
        find_all(ids, rows, self.ids, self._slots, self._starts, self._orders)
        return rows

    def claim(self, ids: U64) -> tuple[I64, I64]:
        """The row of each id, new rows for unknown ones; and which of them are new (1) or were known (0)."""
        rows, fresh = np.empty(len(ids), np.int64), np.zeros(len(ids), np.int64)
        spare = self._spares(len(ids))
        self.ids = grown(self.ids, self.rows + len(ids), 0)
        done = 0
        while done < len(ids):
            done = claim_all(
                ids, rows, fresh, done, spare, self.ids, self._slots, self._starts, self._orders,
                self._filled, self._free, self._used,
            )  # fmt: skip
            if done < len(ids):
                self._slots = grown(self._slots, self._room_for(ids[done]))
        self._take(spare)
        return rows, fresh

    def forget(self, rows: I64, *, patient: bool = False) -> None:
        """Unknown from now on; the rows will serve new ids, the last first; `patient`: after those that are spare."""
        forget_all(self.ids[rows], self.ids, self._slots, self._starts, self._orders)
        at = 0 if patient else len(self._spare)
        self._spare[at:at] = rows.tolist()

    def load(self, count: int, rows: I64) -> None:
        """Take over ids that were stored: these of `count` rows are in use, the others are spare."""
        self.rows, done = count, 0
        while done < len(rows):
            done = put_all(
                rows, done, self.ids, self._slots, self._starts, self._orders, self._filled, self._free, self._used
            )
            if done < len(rows):
                self._slots = grown(self._slots, self._room_for(self.ids[rows[done]]))
        spare = np.ones(count, np.bool_)
        spare[rows] = False
        self._spare = np.flatnonzero(spare)[::-1].tolist()

    def _spares(self, wanted: int) -> I64:
        """A count of rows used so far (none), then rows that are free, used ones first."""
        again = self._spare[-wanted:][::-1] if wanted else []  # the last none of a list are all of it
        spare = np.arange(self.rows - len(again) - 1, self.rows + wanted - len(again))
        spare[0], spare[1 : 1 + len(again)] = 0, again
        return spare

    def _take(self, spare: I64) -> None:
        """The spare rows that were used up are in use now."""
        taken = spare[1 : 1 + int(spare[0])]
        again = int((taken < self.rows).sum())
        if again:
            del self._spare[-again:]
        self.rows += len(taken) - again

    def _room_for(self, key: np.uint64) -> int:
        shard = int(key >> np.uint64(48)) & 255
        return int(self._used[0]) + (16 << max(0, int(self._orders[shard])))


@part
def find(key, ids, slots, starts, orders):  # type: ignore[no-untyped-def]
    """The row of an id, or -1."""
    shard = (key >> 48) & 255
    if orders[shard] < 0:
        return -1
    mask = (1 << orders[shard]) - 1
    at = key & mask
    while True:
        row = slots[starts[shard] + at].item
        if row == -1:
            return -1
        if row >= 0 and ids[row] == key:
            return row
        at = (at + 1) & mask


@part
def place(row, key, slots, starts, orders):  # type: ignore[no-untyped-def]
    shard = (key >> 48) & 255
    mask = (1 << orders[shard]) - 1
    at = key & mask
    while slots[starts[shard] + at].item >= 0:
        at = (at + 1) & mask
    slots[starts[shard] + at].item = row


@part
def rehash(shard, ids, slots, starts, orders, filled, free, used):  # type: ignore[no-untyped-def]
    """Move a shard to a run with room for twice what lives in it; 0 if `slots` must grow first."""
    alive = 0
    old, old_order = starts[shard], orders[shard]
    old_room = (1 << old_order) if old_order >= 0 else 0
    for at in range(old_room):
        alive += slots[old + at].item >= 0
    order = 3
    while (1 << order) < 4 * (alive + 1):
        order += 1
    start = take_run(slots, free, used, order)
    if start < 0:
        return 0
    for at in range(1 << order):
        slots[start + at].item = -1
    starts[shard], orders[shard], filled[shard] = start, order, alive
    for at in range(old_room):
        if slots[old + at].item >= 0:
            place(slots[old + at].item, ids[slots[old + at].item], slots, starts, orders)
    if old_order >= 0:
        free_run(slots, free, old, old_order)
    return 1


@kernel(nothing(u64s, i64s, u64s, SLOTS, i64s, i32s))
def find_all(keys, rows, ids, slots, starts, orders):  # type: ignore[no-untyped-def]
    for number in range(len(keys)):
        rows[number] = find(keys[number], ids, slots, starts, orders)


@kernel(one_i64(u64s, i64s, i64s, one_i64, i64s, u64s, SLOTS, i64s, i32s, i32s, i64s, i64s))
def claim_all(keys, rows, fresh, done, spare, ids, slots, starts, orders, filled, free, used):  # type: ignore[no-untyped-def]
    """Rows for ids from number `done` on, taking the next spare row for each new one.

    `spare[0]` counts spare rows used so far; the rows themselves follow. `fresh` marks the new ones.
    Returns how many are done: fewer than all if `slots` must grow first.
    """
    for number in range(done, len(keys)):
        key = keys[number]
        row = find(key, ids, slots, starts, orders)
        if row < 0:
            shard = (key >> 48) & 255
            if orders[shard] < 0 or 4 * (filled[shard] + 1) > 3 * (1 << orders[shard]):
                if rehash(shard, ids, slots, starts, orders, filled, free, used) == 0:
                    return number
            row = spare[1 + spare[0]]
            spare[0] += 1
            ids[row] = key
            filled[shard] += 1
            fresh[number] = 1
            place(row, key, slots, starts, orders)
        rows[number] = row
    return len(keys)


@kernel(one_i64(i64s, one_i64, u64s, SLOTS, i64s, i32s, i32s, i64s, i64s))
def put_all(rows, done, ids, slots, starts, orders, filled, free, used):  # type: ignore[no-untyped-def]
    """Index rows whose ids stand already, from number `done` on; returns how many are done, as above."""
    for number in range(done, len(rows)):
        key = ids[rows[number]]
        shard = (key >> 48) & 255
        if orders[shard] < 0 or 4 * (filled[shard] + 1) > 3 * (1 << orders[shard]):
            if rehash(shard, ids, slots, starts, orders, filled, free, used) == 0:
                return number
        filled[shard] += 1
        place(rows[number], key, slots, starts, orders)
    return len(rows)


@kernel(nothing(u64s, u64s, SLOTS, i64s, i32s))
def forget_all(keys, ids, slots, starts, orders):  # type: ignore[no-untyped-def]
    for number in range(len(keys)):
        shard = (keys[number] >> 48) & 255
        if orders[shard] < 0:
            continue
        mask = (1 << orders[shard]) - 1
        at = keys[number] & mask
        while True:
            row = slots[starts[shard] + at].item
            if row == -1:
                break
            if row >= 0 and ids[row] == keys[number]:
                slots[starts[shard] + at].item = -2
                break
            at = (at + 1) & mask
