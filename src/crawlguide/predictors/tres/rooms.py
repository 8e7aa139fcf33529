"""Which URLs wait in which leaf. Each leaf has a room of its own; in one that is full the newcomer takes the place of
another or goes away, so that what is there is always an even sample of all that came.
"""

import numpy as np

from crawlguide.core.kernels import I32, I64, kernel, nothing, one_f64, one_i64, records
from crawlguide.predictors.chance import uniform
from crawlguide.predictors.tres.records import CRAWL, LINK, ROOM, WAITING
from crawlguide.predictors.tres.tree import LEAVES, NODES, leaf_of

LINKS, CRAWLS = records(LINK), records(CRAWL)


@kernel(one_i64(I64, LINKS, NODES, LEAVES, I32, I32, CRAWLS, one_i64, I64, I64))
def enter(urls, links, nodes, leaves, rooms, places, crawl, seed, changed, lost):  # type: ignore[no-untyped-def]
    """URLs (rows of `links`) go to their leaves. Says which places changed (-1: none); returns how many were lost."""
    count = 0
    for row in range(len(urls)):
        url = urls[row]
        number = leaf_of(nodes, links[url].x)
        leaf = leaves[number]
        leaf.offered += 1
        place = np.int64(leaf.waiting)
        if place == ROOM:
            place = np.int64(uniform(seed, crawl[0].draws) * leaf.offered)
            crawl[0].draws += 1
            lost[count] = url if place >= ROOM else rooms[number * ROOM + place]
            count += 1
        else:
            leaf.waiting += 1
        changed[row] = -1
        if place < ROOM:
            at = number * ROOM + place
            rooms[at], places[url], links[url].state, changed[row] = url, at, WAITING, at
    return count


@kernel(nothing(I64, LEAVES, I32, I32, I64))
def leave(urls, leaves, rooms, places, changed):  # type: ignore[no-untyped-def]
    """URLs that wait do so no longer: the last of the room takes the place. Says which places changed (-1: none)."""
    for row in range(len(urls)):
        at = places[urls[row]]
        changed[row] = at
        if at >= 0:
            leaf = at // ROOM
            leaves[leaf].waiting -= 1
            last = rooms[leaf * ROOM + leaves[leaf].waiting]
            rooms[at], places[last], places[urls[row]] = last, at, -1


@kernel(nothing(LINKS, LEAVES, I32, I32, one_i64, one_i64, one_i64, one_f64))
def part_ways(links, leaves, rooms, places, leaf, new_leaf, feature, threshold):  # type: ignore[no-untyped-def]
    """After a leaf has become two, those who wait in it go where they belong, in the order in which they stand."""
    old, new = leaves[leaf], leaves[new_leaf]
    stay = 0
    for place in range(old.waiting):
        url = rooms[leaf * ROOM + place]
        if links[url].x[feature] <= threshold:
            at = leaf * ROOM + stay
            stay += 1
        else:
            at = new_leaf * ROOM + new.waiting
            new.waiting += 1
        rooms[at], places[url] = url, at
    old.waiting, old.offered, new.offered = stay, stay, new.waiting


@kernel(nothing(I32, LEAVES, I32))
def find_places(rooms, leaves, places):  # type: ignore[no-untyped-def]
    """Where each URL waits, as the rooms say."""
    for leaf in range(len(leaves)):
        for place in range(leaves[leaf].waiting):
            places[rooms[leaf * ROOM + place]] = leaf * ROOM + place


@kernel(one_i64(LEAVES, I32, CRAWLS, one_i64, one_i64, one_i64, I64))
def draw(leaves, rooms, crawl, seed, wanted, most, drawn):  # type: ignore[no-untyped-def]
    """From each leaf one URL that waits; several, spread over its room, where that gives fewer than wanted.

    At most `most` of one leaf. Returns how many were drawn.
    """
    awake, count = 0, 0
    for leaf in range(len(leaves)):
        awake += leaves[leaf].waiting > 0
    if awake == 0:
        return 0
    each = min(max(most, 1), (wanted + awake - 1) // awake) if wanted > awake else 1
    for leaf in range(len(leaves)):
        waiting = np.int64(leaves[leaf].waiting)
        if waiting == 0:
            continue
        mine = min(each, waiting)
        start = uniform(seed, crawl[0].draws) * waiting
        crawl[0].draws += 1
        for turn in range(mine):
            place = np.int64(start + turn * waiting / mine) % waiting
            drawn[count] = rooms[leaf * ROOM + place]
            count += 1
    return count


@kernel(nothing(one_f64, CRAWLS, one_i64, I64, I64))
def greedy(epsilon, crawl, seed, by_value, order):  # type: ignore[no-untyped-def]
    """ε-greedy: for each place of an answer the best that is left, or with a chance of ε any that is left."""
    taken = np.zeros(len(by_value), np.bool_)
    best = 0
    for place in range(len(order)):
        pick = np.int64(-1)
        if uniform(seed, crawl[0].draws) < epsilon:
            while pick < 0 or taken[pick]:
                crawl[0].draws += 1
                pick = np.int64(uniform(seed, crawl[0].draws) * len(by_value))
        else:
            while taken[by_value[best]]:
                best += 1
            pick = by_value[best]
        crawl[0].draws += 1
        taken[pick] = True
        order[place] = pick
