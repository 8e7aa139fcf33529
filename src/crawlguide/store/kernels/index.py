"""From a 64-bit id to its row: open addressing in 256 shards, each a run of slots that doubles by itself.

One shard holds 1/256 of the ids, so growing costs a fraction of a millisecond even at millions of rows, and never
all at once. A slot holds a row number, -1 (never used) or -2 (was used).
"""

import numpy as np

from crawlguide.core.kernels import I32, I64, U64, kernel, nothing, one_i64, part, records
from crawlguide.store.kernels.runs import give_run, take_run

SHARDS = 256
SLOT = np.dtype([("item", np.int32)])
SLOTS = records(SLOT)


@part
def find(key, ids, slots, starts, orders):
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
def place(row, key, slots, starts, orders):
    shard = (key >> 48) & 255
    mask = (1 << orders[shard]) - 1
    at = key & mask
    while slots[starts[shard] + at].item >= 0:
        at = (at + 1) & mask
    slots[starts[shard] + at].item = row


@part
def rehash(shard, ids, slots, starts, orders, filled, free, used):
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
        give_run(slots, free, old, old_order)
    return 1


@kernel(nothing(U64, I64, U64, SLOTS, I64, I32))
def find_all(keys, rows, ids, slots, starts, orders):
    for number in range(len(keys)):
        rows[number] = find(keys[number], ids, slots, starts, orders)


@kernel(one_i64(U64, I64, I64, one_i64, I64, U64, SLOTS, I64, I32, I32, I64, I64))
def claim_all(keys, rows, fresh, done, spare, ids, slots, starts, orders, filled, free, used):
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


@kernel(one_i64(I64, one_i64, U64, SLOTS, I64, I32, I32, I64, I64))
def put_all(rows, done, ids, slots, starts, orders, filled, free, used):
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


@kernel(nothing(U64, U64, SLOTS, I64, I32))
def forget_all(keys, ids, slots, starts, orders):
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
