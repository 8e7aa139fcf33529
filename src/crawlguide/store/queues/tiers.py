"""Heaps in two tiers: items in groups, and the groups themselves ordered by their best item.

Here items are rows of URLs, and groups are their hosts. Hosts that may not be fetched now are set aside until they
open again, so that looking for the best never meets them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import f64s, i32s, i64s, kernel, named_tuple, nothing, one_f64, one_i64, pair, part
from crawlguide.store.columns import grown
from crawlguide.store.queues.heaps import (
    GROUPS,
    ITEMS,
    SLOT,
    SLOTS,
    HeapColumns,
    Heaps,
    better,
    push_one,
    rekey_one,
    remove_one,
)

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I32, I64

OPEN, SHUT = 0, 1
SHUT_AT_ONCE = 1_000
HEAP = named_tuple(HeapColumns, SLOTS, GROUPS, ITEMS)


class Tiers:
    """Groups are OPEN, ordered by the key of their best item, or SHUT, ordered by when they open again."""

    def __init__(self) -> None:
        self.inner = Heaps()
        self.outer = Heaps()
        self.outer.fit(0, 2)
        self._taken: I32 = np.zeros(0, np.int32)  # zeros: how many items of each group a walk has taken

    def fit(self, items: int, groups: int) -> None:
        self.inner.fit(items, groups)
        self.outer.fit(groups, 2)
        self._taken = grown(self._taken, groups, 0)

    def push(self, items: I32, groups: I32, keys: F64, ties: I64) -> None:
        self.inner.push(items, groups, keys, ties)
        self._settle(groups)

    def load(self, items: I32, groups: I32, keys: F64, ties: I64) -> None:
        """Queue many items where there are none."""
        self.inner.load(items, groups, keys, ties)
        self._settle(np.unique(groups))

    def remove(self, items: I32) -> None:
        """Items in no heap are left alone."""
        groups = self.inner.items["group"][items]
        self.inner.remove(items)
        self._settle(groups)

    def rekey(self, items: I32, keys: F64) -> None:
        """Items in no heap are left alone."""
        self.inner.rekey(items, keys)
        self._settle(self.inner.items["group"][items])

    def best(self, limit: int, per_host: int, until: float, opens: F64, queue_of: I32) -> I32:
        """The best items of groups that open by `until`, best first; groups found shut are set aside.

        `opens[queue_of[group]]` says when a group may be fetched again.
        """
        self._open_by(until)
        while True:
            items, shut = np.empty(limit, np.int32), np.empty(SHUT_AT_ONCE, np.int32)
            inner, outer = self.inner.columns, self.outer.columns
            count, closed = best(inner, outer, opens, queue_of, until, per_host, self._taken, items, shut)
            if closed:
                self.shut(shut[:closed], opens[queue_of[shut[:closed]]])
            if count == limit or closed < SHUT_AT_ONCE:
                return items[:count]

    def best_of(self, group: int, most: int) -> I32:
        """The best items of one group in their order."""
        items = np.empty(min(most, self.inner.size(group)), np.int32)
        best_of(self.inner.slots, self.inner.groups, group, items)
        return items

    def worst(self, group: int) -> int:
        """The last item of one group, found among the lower half of its heap."""
        heap = self.inner
        start, size = int(heap.groups["start"][group]), heap.size(group)
        leaves = heap.slots[start + size // 2 : start + size]
        lowest = leaves[leaves["key"] == leaves["key"].min()]
        return int(lowest["item"][lowest["tie"].argmax()])

    def shut(self, groups: I32, until: F64) -> None:
        """Keep groups out of the best until the given instants."""
        self.outer.remove(groups)
        filled = self.inner.groups["size"][groups] > 0
        groups, until = groups[filled], until[filled]
        self.outer.push(groups, np.full(len(groups), SHUT, np.int32), -until, groups.astype(np.int64))

    def open(self, groups: I32) -> None:
        """Let groups in again."""
        self.outer.remove(groups)
        self._settle(groups)

    def next_opening(self) -> float | None:
        """When the first shut group opens; None if none is shut."""
        first = self.outer.first(SHUT)
        return None if first is None else -first[0]

    def any_open(self) -> bool:
        return self.outer.size(OPEN) > 0

    def _open_by(self, at: float) -> None:
        """Let in the groups whose time has come."""
        first = self.next_opening()
        if first is not None and first <= at:
            self.open(self.outer.not_below(SHUT, -at, SHUT_AT_ONCE))

    def _settle(self, groups: I32) -> None:
        """Bring the outer tier in line with what the inner heaps of these groups now hold."""
        inner, outer, done = self.inner, self.outer, 0
        while done < len(groups):
            done = settle(
                inner.slots, inner.groups, outer.slots, outer.groups, outer.items, outer.free, outer.used, groups, done
            )
            if done < len(groups):
                outer.widen(OPEN)


@kernel(one_i64(SLOTS, GROUPS, SLOTS, GROUPS, ITEMS, i64s, i64s, i32s, one_i64))
def settle(slots, groups, outer_slots, outer_groups, outer_items, free, used, which, done):  # type: ignore[no-untyped-def]
    """Bring the outer tier in line with what these groups now hold: an empty one leaves, a shut one stays shut.

    Returns how many groups are done: fewer than all if the outer slots must grow first.
    """
    for number in range(done, len(which)):
        group = which[number]
        if groups[group].size == 0:
            remove_one(outer_slots, outer_groups, outer_items, group)
            continue
        queued = outer_items[group].place >= 0
        if queued and outer_items[group].group == SHUT:
            continue
        head = slots[groups[group].start]
        if queued:
            rekey_one(outer_slots, outer_groups, outer_items, group, head.key, head.tie)
        elif not push_one(outer_slots, outer_groups, outer_items, free, used, group, OPEN, head.key, head.tie):
            return number
    return len(which)


# The walk over the best items takes none of them out. Groups are items of the outer heap, keyed by their best item. A
# small heap of places to look at next starts at the outer root; looking at a group adds the two groups below it and its
# best item, looking at an item adds the two items below it. So it costs O(found · log found), whatever waits.

GROUP, PLACE = 0, 1


@part
def note(heap, looks, sizes, slot, group, place):  # type: ignore[no-untyped-def]
    """Add a place to look at: `heap` orders numbers of looks. `sizes` counts looks ever noted and still waiting."""
    look, at = sizes[0], sizes[1]
    sizes[0], sizes[1] = look + 1, at + 1
    looks[look, GROUP], looks[look, PLACE] = group, place
    while at > 0:
        above = (at - 1) >> 1
        if heap[above].key > slot.key or (heap[above].key == slot.key and heap[above].tie < slot.tie):
            break
        heap[at] = heap[above]
        at = above
    heap[at].key, heap[at].tie, heap[at].item = slot.key, slot.tie, look


@part
def next_look(heap, sizes):  # type: ignore[no-untyped-def]
    """Take out the best place to look at."""
    look, size, at = heap[0].item, sizes[1] - 1, 0
    sizes[1] = size
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and better(heap, below + 1, below):
            below += 1
        if not better(heap, below, size):
            break
        heap[at] = heap[below]
        at = below
    heap[at] = heap[size]
    return look


@kernel(pair(HEAP, HEAP, f64s, i32s, one_f64, one_i64, i32s, i32s, i32s))
def best(inner, outer, opens, queue_of, until, per_group, taken, items, shut):  # type: ignore[no-untyped-def]
    """Fill `items` with the best of groups that open by `until`; groups that do not are listed in `shut`.

    No group gives more than `per_group`. Group OPEN of the outer heap holds the groups. `taken` is a column of zeros
    over groups, and is left so. Returns how many items, and how many shut groups, were found.
    """
    groups_at_most = len(items) + len(shut)
    room = 3 * groups_at_most + 2 * len(items) + 8
    heap, looks, sizes = np.empty(room, SLOT), np.empty((room, 2), np.int32), np.zeros(2, np.int64)
    count, closed, looked = 0, 0, 0
    start, many = outer.groups[OPEN].start, outer.groups[OPEN].size
    if many > 0:
        note(heap, looks, sizes, outer.slots[start], outer.slots[start].item, -1)
    while sizes[1] > 0 and count < len(items) and looked < groups_at_most:
        look = next_look(heap, sizes)
        group, place = looks[look, GROUP], looks[look, PLACE]
        if place < 0:
            looked += 1
            at = -1 - place
            for below in range(2 * at + 1, min(2 * at + 3, many)):
                note(heap, looks, sizes, outer.slots[start + below], outer.slots[start + below].item, -1 - below)
            if opens[queue_of[group]] > until:
                if closed < len(shut):
                    shut[closed] = group
                    closed += 1
                continue
            place = 0  # the group stands where its best item stands, so that item is next
        if taken[group] < per_group:
            taken[group] += 1
            items[count] = inner.slots[inner.groups[group].start + place].item
            count += 1
            for below in range(2 * place + 1, min(2 * place + 3, inner.groups[group].size)):
                note(heap, looks, sizes, inner.slots[inner.groups[group].start + below], group, below)
    for number in range(count):
        taken[inner.items[items[number]].group] = 0
    return count, closed


@kernel(nothing(SLOTS, GROUPS, one_i64, i32s))
def best_of(slots, groups, group, items):  # type: ignore[no-untyped-def]
    """Fill `items`, which is no longer than the group, with its best in their order: the same walk in one group."""
    room, start, size = 2 * len(items) + 2, groups[group].start, groups[group].size
    heap, looks, sizes = np.empty(room, SLOT), np.empty((room, 2), np.int32), np.zeros(2, np.int64)
    if len(items) > 0:
        note(heap, looks, sizes, slots[start], group, 0)
    for count in range(len(items)):
        place = looks[next_look(heap, sizes), PLACE]
        items[count] = slots[start + place].item
        for below in range(2 * place + 1, min(2 * place + 3, size)):
            note(heap, looks, sizes, slots[start + below], group, below)
