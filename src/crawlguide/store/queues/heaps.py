"""Many exact priority queues over one set of items.

A group's heap is a run of slots; a slot holds the key, the tie-breaker and the item itself, so that sifting reads
memory in one place. An item knows its group and its place in that group's heap (-1: in none).
Largest key first; among equal keys the smallest tie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crawlguide.core.kernels import f64s, i32s, i64s, kernel, nothing, one_f64, one_i64, part, records
from crawlguide.store.columns import ORDERS, free_run, grown, take_run

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I32, I64

SLOT = np.dtype([("key", np.float64), ("tie", np.int64), ("item", np.int32)])
GROUP = np.dtype([("start", np.int64), ("size", np.int32), ("order", np.int32)])  # room = 2**order, -1: none yet
ITEM = np.dtype([("place", np.int32), ("group", np.int32)])
SLOTS, GROUPS, ITEMS = records(SLOT), records(GROUP), records(ITEM)


class HeapColumns(NamedTuple):
    """What a kernel reads of some heaps."""

    slots: np.ndarray[Any, Any]
    groups: np.ndarray[Any, Any]
    items: np.ndarray[Any, Any]


class Heaps:
    """One heap for each group; an item is in at most one. Largest key first, smallest tie among equals."""

    def __init__(self) -> None:
        self.slots = np.zeros(0, SLOT)
        self.groups = np.zeros(0, GROUP)
        self.items = np.zeros(0, ITEM)
        self.free = np.full(ORDERS, -1, np.int64)
        self.used = np.zeros(1, np.int64)

    @property
    def columns(self) -> HeapColumns:
        return HeapColumns(self.slots, self.groups, self.items)

    def fit(self, items: int, groups: int) -> None:
        """Make room for items and groups numbered below these."""
        self.items = grown(self.items, items, (-1, 0))
        self.groups = grown(self.groups, groups, (0, 0, -1))

    def push(self, items: I32, groups: I32, keys: F64, ties: I64) -> None:
        """Queue items; one that is queued already stays where it is."""
        done = 0
        while done < len(items):
            done = push(self.slots, self.groups, self.items, self.free, self.used, items, groups, keys, ties, done)
            if done < len(items):
                self.widen(int(groups[done]))

    def load(self, items: I32, groups: I32, keys: F64, ties: I64) -> None:
        """Queue many items in heaps that are empty."""
        give_room(self.groups, np.bincount(groups, minlength=len(self.groups)), self.used)
        self.slots = grown(self.slots, int(self.used[0]))
        self.push(items, groups, keys, ties)

    def widen(self, group: int) -> None:
        """Room for a run twice as long as the group has."""
        order = int(self.groups["order"][group])
        self.slots = grown(self.slots, int(self.used[0]) + (2 << max(0, order)))

    def remove(self, items: I32) -> None:
        """Items in no heap are left alone."""
        remove(self.slots, self.groups, self.items, items)

    def rekey(self, items: I32, keys: F64) -> None:
        """Items in no heap are left alone."""
        rekey(self.slots, self.groups, self.items, items, keys)

    def size(self, group: int) -> int:
        return int(self.groups["size"][group])

    def first(self, group: int) -> tuple[float, int] | None:
        """The key and the number of a group's best item; None if it is empty."""
        if not self.groups["size"][group]:
            return None
        slot = self.slots[self.groups["start"][group]]
        return float(slot["key"]), int(slot["item"])

    def top(self, group: int, most: int) -> I32:
        """Up to `most` good items of a group: the top of its heap, the best first and the others in any order."""
        start = int(self.groups["start"][group])
        found: I32 = self.slots["item"][start : start + min(self.size(group), most)].astype(np.int32)
        return found

    def not_below(self, group: int, floor: float, most: int) -> I32:
        """Up to `most` items of a group whose key is at least `floor`, in any order."""
        found = np.empty(most, np.int32)
        count = not_below(self.slots, self.groups, group, floor, found)
        return found[:count]


@part
def better(slots, a, b):  # type: ignore[no-untyped-def]
    return slots[a].key > slots[b].key or (slots[a].key == slots[b].key and slots[a].tie < slots[b].tie)


@part
def put(slots, items, start, at, key, tie, item):  # type: ignore[no-untyped-def]
    slots[start + at].key = key
    slots[start + at].tie = tie
    slots[start + at].item = item
    items[item].place = at


@part
def move(slots, items, start, to, source):  # type: ignore[no-untyped-def]
    put(slots, items, start, to, slots[start + source].key, slots[start + source].tie, slots[start + source].item)


@part
def rise(slots, items, start, at):  # type: ignore[no-untyped-def]
    key, tie, item = slots[start + at].key, slots[start + at].tie, slots[start + at].item
    while at > 0:
        above = (at - 1) >> 1
        other = slots[start + above]
        if other.key > key or (other.key == key and other.tie <= tie):
            break
        move(slots, items, start, at, above)
        at = above
    put(slots, items, start, at, key, tie, item)


@part
def sink(slots, items, start, size, at):  # type: ignore[no-untyped-def]
    key, tie, item = slots[start + at].key, slots[start + at].tie, slots[start + at].item
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and better(slots, start + below + 1, start + below):
            below += 1
        other = slots[start + below]
        if other.key < key or (other.key == key and other.tie >= tie):
            break
        move(slots, items, start, at, below)
        at = below
    put(slots, items, start, at, key, tie, item)


@part
def widen(slots, groups, free, used, number):  # type: ignore[no-untyped-def]
    """Move a full group to a run twice as long; False if `slots` must grow first."""
    order, old = groups[number].order + 1, groups[number].start
    start = take_run(slots, free, used, order)
    if start < 0:
        return False
    for at in range(groups[number].size):
        slots[start + at] = slots[old + at]
    if order > 0:
        free_run(slots, free, old, order - 1)
    groups[number].start, groups[number].order = start, order
    return True


@part
def push_one(slots, groups, items, free, used, item, home, key, tie):  # type: ignore[no-untyped-def]
    """Queue an item that is in no heap; False if `slots` must grow first."""
    at, order = groups[home].size, groups[home].order
    if (order < 0 or at == (1 << order)) and not widen(slots, groups, free, used, home):
        return False
    groups[home].size = at + 1
    items[item].group = home
    put(slots, items, groups[home].start, at, key, tie, item)
    rise(slots, items, groups[home].start, at)
    return True


@part
def remove_one(slots, groups, items, item):  # type: ignore[no-untyped-def]
    """Take an item out of its heap, if it is in one."""
    at, home = items[item].place, items[item].group
    if at < 0:
        return
    start, last = groups[home].start, groups[home].size - 1
    groups[home].size = last
    items[item].place = -1
    if at < last:
        move(slots, items, start, at, last)
        rise(slots, items, start, at)
        sink(slots, items, start, last, at)


@part
def rekey_one(slots, groups, items, item, key, tie):  # type: ignore[no-untyped-def]
    """Give an item a new key and tie, if it is in a heap."""
    at, home = items[item].place, items[item].group
    if at < 0:
        return
    put(slots, items, groups[home].start, at, key, tie, item)
    rise(slots, items, groups[home].start, at)
    sink(slots, items, groups[home].start, groups[home].size, at)


@kernel(nothing(GROUPS, i64s, i64s))
def give_room(groups, counts, used):  # type: ignore[no-untyped-def]
    """Runs of the right length for empty groups that will hold so many items: nothing is outgrown on the way."""
    for number in range(len(counts)):
        if counts[number] > 0:
            order = 0
            while (1 << order) < counts[number]:
                order += 1
            groups[number].start, groups[number].order = used[0], order
            used[0] += 1 << order


@kernel(one_i64(SLOTS, GROUPS, ITEMS, i64s, i64s, i32s, i32s, f64s, i64s, one_i64))
def push(slots, groups, items, free, used, which, homes, keys, ties, done):  # type: ignore[no-untyped-def]
    """Queue items from number `done` on. Returns how many are done: fewer than all if `slots` must grow first."""
    for number in range(done, len(which)):
        item = which[number]
        if items[item].place < 0 and not push_one(
            slots, groups, items, free, used, item, homes[number], keys[number], ties[number]
        ):
            return number
    return len(which)


@kernel(nothing(SLOTS, GROUPS, ITEMS, i32s))
def remove(slots, groups, items, which):  # type: ignore[no-untyped-def]
    for item in which:
        remove_one(slots, groups, items, item)


@kernel(nothing(SLOTS, GROUPS, ITEMS, i32s, f64s))
def rekey(slots, groups, items, which, keys):  # type: ignore[no-untyped-def]
    """New keys, old ties; items in no heap are left alone."""
    for number in range(len(which)):
        item = which[number]
        if items[item].place >= 0:
            slot = groups[items[item].group].start + items[item].place
            rekey_one(slots, groups, items, item, keys[number], slots[slot].tie)


@kernel(one_i64(SLOTS, GROUPS, one_i64, one_f64, i32s))
def not_below(slots, groups, number, floor, found):  # type: ignore[no-untyped-def]
    """Items of one heap whose key is at least `floor`, in any order, as many as `found` holds; O(found)."""
    places = np.zeros(len(found) + 1, np.int64)
    start, size, count, looked = groups[number].start, groups[number].size, 0, 0
    if size > 0 and slots[start].key >= floor:
        found[0] = slots[start].item
        count = 1
    while looked < count:
        at = places[looked]
        looked += 1
        for below in range(2 * at + 1, min(2 * at + 3, size)):
            if count < len(found) and slots[start + below].key >= floor:
                found[count] = slots[start + below].item
                places[count] = below
                count += 1
    return count
