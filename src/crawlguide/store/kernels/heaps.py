"""Many exact priority queues over one set of items, kept in shared columns.

Item i has a key, a tie-breaker, the group it is queued in and its place in that group's heap (-1: in none).
A group's heap is a run of `slots` with a start, a size and an order (room = 2**order, -1: none yet).
Largest key first; among equal keys the smallest tie.
"""

import numpy as np

from crawlguide.store.kernels import F64, I32, I64, flag, kernel, nothing, one_f64, one_i32, one_i64
from crawlguide.store.kernels.runs import give_run, take_run


@kernel(flag(F64, I64, one_i32, one_i32))
def better(key, tie, a, b):
    return key[a] > key[b] or (key[a] == key[b] and tie[a] < tie[b])


@kernel(nothing(F64, I64, I32, I32, one_i64, one_i64))
def rise(key, tie, place, slots, start, at):
    item = slots[start + at]
    while at > 0:
        above = (at - 1) >> 1
        other = slots[start + above]
        if not better(key, tie, item, other):
            break
        slots[start + at] = other
        place[other] = at
        at = above
    slots[start + at] = item
    place[item] = at


@kernel(nothing(F64, I64, I32, I32, one_i64, one_i64, one_i64))
def sink(key, tie, place, slots, start, size, at):
    item = slots[start + at]
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and better(key, tie, slots[start + below + 1], slots[start + below]):
            below += 1
        other = slots[start + below]
        if not better(key, tie, other, item):
            break
        slots[start + at] = other
        place[other] = at
        at = below
    slots[start + at] = item
    place[item] = at


@kernel(one_i64(I32, I64, I32, I32, I64, I64, one_i64))
def widen(slots, starts, sizes, orders, free, used, group):
    """Move a full group to a run twice as long; 0 if `slots` must grow first."""
    order = orders[group] + 1
    start = take_run(slots, free, used, order)
    if start < 0:
        return 0
    old = starts[group]
    for at in range(sizes[group]):
        slots[start + at] = slots[old + at]
    if order > 0:
        give_run(slots, free, old, order - 1)
    starts[group] = start
    orders[group] = order
    return 1


@kernel(one_i64(I32, I32, F64, I64, one_i64, F64, I64, I32, I32, I32, I64, I32, I32, I64, I64))
def push(items, groups, keys, ties, done, key, tie, place, group, slots, starts, sizes, orders, free, used):
    """Queue items from number `done` on. Returns how many are done: fewer than all if `slots` must grow first."""
    for number in range(done, len(items)):
        item, home = items[number], groups[number]
        if place[item] >= 0:
            continue
        full = orders[home] < 0 or sizes[home] == (1 << orders[home])
        if full and widen(slots, starts, sizes, orders, free, used, home) == 0:
            return number
        at = sizes[home]
        sizes[home] = at + 1
        key[item], tie[item], group[item] = keys[number], ties[number], home
        slots[starts[home] + at] = item
        rise(key, tie, place, slots, starts[home], at)
    return len(items)


@kernel(nothing(I32, F64, I64, I32, I32, I32, I64, I32))
def remove(items, key, tie, place, group, slots, starts, sizes):
    """Take items out of their heaps; those in none are left alone."""
    for number in range(len(items)):
        item = items[number]
        at = place[item]
        if at < 0:
            continue
        home = group[item]
        start, last = starts[home], sizes[home] - 1
        sizes[home] = last
        place[item] = -1
        if at == last:
            continue
        moved = slots[start + last]
        slots[start + at] = moved
        place[moved] = at
        rise(key, tie, place, slots, start, at)
        sink(key, tie, place, slots, start, last, place[moved])


@kernel(nothing(I32, F64, I64, F64, I64, I32, I32, I32, I64, I32))
def rekey(items, keys, ties, key, tie, place, group, slots, starts, sizes):
    """Give queued items new keys and ties; those in no heap are left alone."""
    for number in range(len(items)):
        item = items[number]
        if place[item] < 0:
            continue
        home = group[item]
        key[item], tie[item] = keys[number], ties[number]
        rise(key, tie, place, slots, starts[home], place[item])
        sink(key, tie, place, slots, starts[home], sizes[home], place[item])


@kernel(one_i64(I32, one_i64, one_f64, F64, I32, I64, I32))
def not_below(found, group, floor, key, slots, starts, sizes):
    """Items of one heap whose key is at least `floor`, in any order, as many as `found` holds; O(found)."""
    count, looked = 0, 0
    if sizes[group] > 0 and key[slots[starts[group]]] >= floor:
        found[0] = slots[starts[group]]
        count = 1
    places = np.zeros(len(found) + 1, np.int64)
    while looked < count:
        at = places[looked]
        looked += 1
        for below in range(2 * at + 1, min(2 * at + 3, sizes[group])):
            item = slots[starts[group] + below]
            if count < len(found) and key[item] >= floor:
                found[count] = item
                places[count] = below
                count += 1
    return count
