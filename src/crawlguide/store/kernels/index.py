"""From a 64-bit id to its row: open addressing in 256 parts, each a run of slots that doubles by itself.

One part holds 1/256 of the ids, so growing costs a fraction of a millisecond even at millions of rows, and never
all at once. A slot holds a row number, -1 (never used) or -2 (was used).
"""

from crawlguide.store.kernels import I32, I64, U64, kernel, nothing, one_i64, one_u64
from crawlguide.store.kernels.runs import give_run, take_run

PARTS = 256


@kernel(one_i64(one_u64, U64, I32, I64, I32))
def find(key, ids, slots, starts, orders):
    """The row of an id, or -1."""
    part = key >> 56
    if orders[part] < 0:
        return -1
    mask = (1 << orders[part]) - 1
    at = key & mask
    while True:
        row = slots[starts[part] + at]
        if row == -1:
            return -1
        if row >= 0 and ids[row] == key:
            return row
        at = (at + 1) & mask


@kernel(nothing(one_i64, one_u64, I32, I64, I32))
def place(row, key, slots, starts, orders):
    part = key >> 56
    mask = (1 << orders[part]) - 1
    at = key & mask
    while slots[starts[part] + at] >= 0:
        at = (at + 1) & mask
    slots[starts[part] + at] = row


@kernel(one_i64(one_i64, U64, I32, I64, I32, I32, I64, I64))
def rehash(part, ids, slots, starts, orders, filled, free, used):
    """Move a part to a run with room for twice what lives in it; 0 if `slots` must grow first."""
    alive = 0
    old, old_order = starts[part], orders[part]
    old_room = (1 << old_order) if old_order >= 0 else 0
    for at in range(old_room):
        alive += slots[old + at] >= 0
    order = 3
    while (1 << order) < 4 * (alive + 1):
        order += 1
    start = take_run(slots, free, used, order)
    if start < 0:
        return 0
    for at in range(1 << order):
        slots[start + at] = -1
    starts[part], orders[part], filled[part] = start, order, alive
    for at in range(old_room):
        if slots[old + at] >= 0:
            place(slots[old + at], ids[slots[old + at]], slots, starts, orders)
    if old_order >= 0:
        give_run(slots, free, old, old_order)
    return 1


@kernel(nothing(U64, I64, U64, I32, I64, I32))
def find_all(keys, rows, ids, slots, starts, orders):
    for number in range(len(keys)):
        rows[number] = find(keys[number], ids, slots, starts, orders)


@kernel(one_i64(U64, I64, I64, one_i64, I64, U64, I32, I64, I32, I32, I64, I64))
def claim_all(keys, rows, fresh, done, spare, ids, slots, starts, orders, filled, free, used):
    """Rows for ids from number `done` on, taking the next spare row for each new one.

    `spare[0]` counts spare rows used so far; the rows themselves follow. `fresh` marks the new ones.
    Returns how many are done: fewer than all if `slots` must grow first.
    """
    for number in range(done, len(keys)):
        key = keys[number]
        row = find(key, ids, slots, starts, orders)
        if row < 0:
            part = key >> 56
            if orders[part] < 0 or 4 * (filled[part] + 1) > 3 * (1 << orders[part]):
                if rehash(part, ids, slots, starts, orders, filled, free, used) == 0:
                    return number
            row = spare[1 + spare[0]]
            spare[0] += 1
            ids[row] = key
            filled[part] += 1
            fresh[number] = 1
            place(row, key, slots, starts, orders)
        rows[number] = row
    return len(keys)


@kernel(nothing(U64, U64, I32, I64, I32))
def forget_all(keys, ids, slots, starts, orders):
    for number in range(len(keys)):
        part = keys[number] >> 56
        if orders[part] < 0:
            continue
        mask = (1 << orders[part]) - 1
        at = keys[number] & mask
        while True:
            row = slots[starts[part] + at]
            if row == -1:
                break
            if row >= 0 and ids[row] == keys[number]:
                slots[starts[part] + at] = -2
                break
            at = (at + 1) & mask
