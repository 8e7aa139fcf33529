"""The best items of all open groups, best first, without taking any out.

Groups (hosts) are themselves items of an outer heap, keyed by their best item. A small heap of places to look at
next starts at the outer root; looking at a host adds its two hosts below and its best item, looking at an item
adds the two items below it. So the walk costs O(found · log found), whatever the frontier holds.
"""

import numpy as np

from crawlguide.core.kernels import F64, I32, I64, kernel, one_f64, one_i64, part
from crawlguide.store.kernels.heaps import GROUPS, ITEMS, SLOT, SLOTS, better

HOST, PLACE = 0, 1


@part
def note(heap, looks, sizes, slot, host, place):
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
def next_look(heap, sizes):
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


@kernel(one_i64(SLOTS, GROUPS, ITEMS, SLOTS, GROUPS, F64, I32, one_f64, one_i64, I32, I32, I32, I64))
def best(
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
