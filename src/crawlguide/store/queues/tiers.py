"""The outer tier follows the inner one: groups ordered by the best item they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import f64s, i32s, i64s, kernel, one_f64, one_i64, part
from crawlguide.store.queues.heaps import GROUPS, ITEMS, SLOT, SLOTS, Heaps, better, push_one, rekey_one, remove_one

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I32, I64

OPEN, SHUT = 0, 1


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


# The best items of all open groups, best first, without taking any out.
#
# Groups (hosts) are themselves items of an outer heap, keyed by their best item. A small heap of places to look at
# next starts at the outer root; looking at a host adds its two hosts below and its best item, looking at an item
# adds the two items below it. So the walk costs O(found · log found), whatever the frontier holds.

HOST, PLACE = 0, 1


@part
def note(heap, looks, sizes, slot, host, place):  # type: ignore[no-untyped-def]
    """Add a place to look at: `heap` orders numbers of looks. `sizes` counts looks ever noted and still waiting."""
    look, at = sizes[0], sizes[1]
    sizes[0], sizes[1] = look + 1, at + 1
    looks[look, HOST], looks[look, PLACE] = host, place
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


@kernel(one_i64(SLOTS, GROUPS, ITEMS, SLOTS, GROUPS, f64s, i32s, one_f64, one_i64, i32s, i32s, i32s, i64s))
def best(  # type: ignore[no-untyped-def]
    slots, groups, items, outer_slots, outer_groups, opens, host_of, until, per_host, given, found, shut, shut_count
):
    """Fill `found` with the best items of hosts that open by `until`; hosts that do not are listed in `shut`.

    `opens[host_of[h]]` is the instant at which host h may be fetched again; no host gives more than `per_host`.
    Group 0 of the outer heap holds the hosts. `given` is a column of zeros over hosts, and is left so.
    Returns how many items were found; `shut_count[0]` how many hosts were shut.
    """
    hosts_at_most = len(found) + len(shut)
    room = 3 * hosts_at_most + 2 * len(found) + 8
    heap, looks, sizes = np.empty(room, SLOT), np.empty((room, 2), np.int32), np.zeros(2, np.int64)
    count, closed, looked = 0, 0, 0
    start, many = outer_groups[0].start, outer_groups[0].size
    if many > 0:
        note(heap, looks, sizes, outer_slots[start], outer_slots[start].item, -1)
    while sizes[1] > 0 and count < len(found) and looked < hosts_at_most:
        look = next_look(heap, sizes)
        host, place = looks[look, HOST], looks[look, PLACE]
        if place < 0:
            looked += 1
            at = -1 - place
            for below in range(2 * at + 1, min(2 * at + 3, many)):
                note(heap, looks, sizes, outer_slots[start + below], outer_slots[start + below].item, -1 - below)
            if opens[host_of[host]] > until:
                if closed < len(shut):
                    shut[closed] = host
                    closed += 1
                continue
            place = 0  # the host stands where its best item stands, so that item is next
        if given[host] < per_host:
            given[host] += 1
            found[count] = slots[groups[host].start + place].item
            count += 1
            for below in range(2 * place + 1, min(2 * place + 3, groups[host].size)):
                note(heap, looks, sizes, slots[groups[host].start + below], host, below)
    for number in range(count):
        given[items[found[number]].group] = 0
    shut_count[0] = closed
    return count


# Heaps in two tiers: items in groups, and the groups themselves ordered by their best item.


class Tiers:
    """Groups are OPEN, ordered by the key of their best item, or SHUT, ordered by when they open again."""

    def __init__(self) -> None:
        self.inner = Heaps()
        self.outer = Heaps()
        self.outer.fit(0, 2)

    def fit(self, items: int, groups: int) -> None:
        self.inner.fit(items, groups)
        self.outer.fit(groups, 2)

    def push(self, items: I32, groups: I32, keys: F64, ties: I64) -> None:
        self.inner.push(items, groups, keys, ties)
        self._settle(groups)

    def load(self, items: I32, groups: I32, keys: F64, ties: I64) -> None:
        """Queue many items where there are none."""
        self.inner.load(items, groups, keys, ties)
        self._settle(np.unique(groups))

    def remove(self, items: I32) -> None:
        """Items in no heap are left alone."""
        groups = self._groups_of(items)
        self.inner.remove(items)
        self._settle(groups)

    def rekey(self, items: I32, keys: F64) -> None:
        """Items in no heap are left alone."""
        self.inner.rekey(items, keys)
        self._settle(self._groups_of(items))

    def shut(self, groups: I32, until: F64) -> None:
        """Keep groups out of the best until the given instants."""
        self.outer.remove(groups)
        held = self.inner.groups["size"][groups] > 0
        groups, until = groups[held], until[held]
        self.outer.push(groups, np.full(len(groups), SHUT, np.int32), -until, groups.astype(np.int64))

    def open(self, groups: I32) -> None:
        """Let groups in again."""
        self.outer.remove(groups)
        self._settle(groups)

    def open_until(self, at: float, most: int) -> None:
        """Let in every group whose time has come."""
        first = self.next_opening()
        if first is not None and first <= at:
            self.open(self.outer.not_below(SHUT, -at, most))

    def next_opening(self) -> float | None:
        """When the first shut group opens; None if none is shut."""
        first = self.outer.first(SHUT)
        return None if first is None else -first[0]

    def any_open(self) -> bool:
        return self.outer.size(OPEN) > 0

    def _groups_of(self, items: I32) -> I32:
        return self.inner.items["group"][items]

    def _settle(self, groups: I32) -> None:
        """Bring the outer tier in line with what the inner heaps of these groups now hold."""
        inner, outer, done = self.inner, self.outer, 0
        while done < len(groups):
            done = settle(
                inner.slots, inner.groups, outer.slots, outer.groups, outer.items, outer.free, outer.used, groups, done
            )
            if done < len(groups):
                outer.widen(OPEN)
