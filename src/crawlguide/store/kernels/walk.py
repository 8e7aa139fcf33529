"""The best items of all open groups, best first, without taking any out.

Groups (hosts) are themselves items of an outer heap, keyed by their best item. A small heap of places to look at
next starts at the outer root; looking at a host adds its two hosts below and its best item, looking at an item
adds the two items below it. So the walk costs O(found · log found), whatever the frontier holds.
"""

import numpy as np

from crawlguide.store.kernels import F64, I32, I64, flag, kernel, nothing, one_f64, one_i64


@kernel(flag(F64, I64, one_i64, one_i64))
def before(key, tie, a, b):
    return key[a] > key[b] or (key[a] == key[b] and tie[a] < tie[b])


@kernel(nothing(F64, I64, I32, I32, one_i64, one_i64))
def swap(keys, ties, hosts, places, a, b):
    keys[a], keys[b] = keys[b], keys[a]
    ties[a], ties[b] = ties[b], ties[a]
    hosts[a], hosts[b] = hosts[b], hosts[a]
    places[a], places[b] = places[b], places[a]


@kernel(one_i64(F64, I64, I32, I32, one_i64, one_f64, one_i64, one_i64, one_i64))
def note(keys, ties, hosts, places, size, key, tie, host, place):
    """Add a place to look at; returns the new size."""
    at = size
    keys[at], ties[at], hosts[at], places[at] = key, tie, host, place
    while at > 0 and before(keys, ties, at, (at - 1) >> 1):
        above = (at - 1) >> 1
        swap(keys, ties, hosts, places, at, above)
        at = above
    return size + 1


@kernel(one_i64(F64, I64, I32, I32, one_i64))
def settle(keys, ties, hosts, places, size):
    """Take out the first place, whose copy now stands behind the last; returns the new size."""
    last = size - 1
    swap(keys, ties, hosts, places, 0, last)
    at = 0
    while 2 * at + 1 < last:
        below = 2 * at + 1
        if below + 1 < last and before(keys, ties, below + 1, below):
            below += 1
        if not before(keys, ties, below, at):
            break
        swap(keys, ties, hosts, places, at, below)
        at = below
    return last


@kernel(
    one_i64(
        I32, I32, I64, one_i64, I32, one_f64, F64, I32, F64, I64, I32, I32, I64, I32, F64, I64, I32, I64, I32,
    )
)
def best(
    found, shut, shut_count, per_host, given, until, opens, host_of, key, tie, group, slots, starts, sizes,
    outer_key, outer_tie, outer_slots, outer_starts, outer_sizes,
):  # fmt: skip
    """Fill `found` with the best items of hosts that open by `until`; hosts that do not are listed in `shut`.

    `opens[host_of[h]]` is the instant at which host h may be fetched again; no host gives more than `per_host`.
    Group 0 of the outer heap holds the hosts. `given` is a column of zeros over hosts, and is left so.
    Returns how many items were found; `shut_count[0]` how many hosts were shut.
    """
    room = 3 * (len(found) + len(shut)) + 2 * len(found) + 8
    keys, ties = np.empty(room), np.empty(room, np.int64)
    hosts, places = np.empty(room, np.int32), np.empty(room, np.int32)
    count, closed, looked, size = 0, 0, 0, 0
    start, many = outer_starts[0], outer_sizes[0]
    if many > 0:
        first = outer_slots[start]
        size = note(keys, ties, hosts, places, size, outer_key[first], outer_tie[first], first, -1)
    while size > 0 and count < len(found) and looked < len(found) + len(shut):
        size = settle(keys, ties, hosts, places, size)
        host, place = hosts[size], places[size]
        if place < 0:
            looked += 1
            at = -1 - place
            for below in range(2 * at + 1, min(2 * at + 3, many)):
                other = outer_slots[start + below]
                size = note(keys, ties, hosts, places, size, outer_key[other], outer_tie[other], other, -1 - below)
            if opens[host_of[host]] > until:
                if closed < len(shut):
                    shut[closed] = host
                    closed += 1
                continue
            item = slots[starts[host]]
            size = note(keys, ties, hosts, places, size, key[item], tie[item], host, 0)
            continue
        if given[host] == per_host:
            continue
        given[host] += 1
        found[count] = slots[starts[host] + place]
        count += 1
        for below in range(2 * place + 1, min(2 * place + 3, sizes[host])):
            item = slots[starts[host] + below]
            size = note(keys, ties, hosts, places, size, key[item], tie[item], host, below)
    for number in range(count):
        given[group[found[number]]] = 0
    shut_count[0] = closed
    return count
