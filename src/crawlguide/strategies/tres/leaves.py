"""The regression tree: from features to a leaf, and when a leaf becomes two.

Only the leaf that has just seen something is tested; a split is never taken back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numba
import numpy as np

from crawlguide.core.kernels import f32s, f64s, i32s, i64s, kernel, matrix_f32, nothing, one_f64, one_i64, part, records
from crawlguide.core.types import Sample
from crawlguide.strategies.shared.draws import uniform
from crawlguide.strategies.tres.records import CRAWL, LEAF, LINK, NODE, ROOM, SAMPLE, SEEN, WAITING, X

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, Mask
    from crawlguide.core.types import Ask, Batch

NODES, LEAVES, SAMPLES = records(NODE), records(LEAF), records(SAMPLE)
COUNTS_I32 = numba.int32[::1]


@part
def leaf_of(nodes, x):  # type: ignore[no-untyped-def]
    at = 0
    while nodes[at].feature >= 0:
        at = nodes[at].left if x[nodes[at].feature] <= nodes[at].threshold else nodes[at].right
    return nodes[at].leaf


@kernel(nothing(NODES, matrix_f32, i64s))
def leaves_of(nodes, x, found):  # type: ignore[no-untyped-def]
    for row in range(len(x)):
        found[row] = leaf_of(nodes, x[row])


@kernel(one_i64(NODES, LEAVES, SAMPLES, f32s, one_f64))
def see(nodes, leaves, samples, x, reward):  # type: ignore[no-untyped-def]
    """Write an experience down, the oldest of its leaf makes room; returns the leaf."""
    number = leaf_of(nodes, x)
    leaf = leaves[number]
    row = number * SEEN + leaf.heard % SEEN
    samples[row].reward = reward
    for column in range(X):
        samples[row].x[column] = x[column]
    leaf.heard += 1
    leaf.total += reward
    return number


@kernel(nothing(SAMPLES, one_i64, one_i64, f64s))
def best_split(samples, first, count, found):  # type: ignore[no-untyped-def]
    """Where the variance of rewards falls most: feature, threshold and by how much (times `count`).

    The feature is -1 where no split reduces it.
    """
    found[0], found[1], found[2] = -1.0, 0.0, 1e-9
    total, least, most = 0.0, np.inf, -np.inf
    for row in range(first, first + count):
        total += samples[row].reward
        least, most = min(least, samples[row].reward), max(most, samples[row].reward)
    if least == most:
        return
    values = np.empty(count, np.float32)
    for column in range(X):
        for row in range(count):
            values[row] = samples[first + row].x[column]
        order = np.argsort(values)
        left = 0.0
        for place in range(count - 1):
            left += samples[first + order[place]].reward
            here, there = values[order[place]], values[order[place + 1]]
            if here < there:
                right = total - left
                gain = left**2 / (place + 1) + right**2 / (count - place - 1) - total**2 / count
                if gain > found[2]:
                    found[0], found[1], found[2] = column, here, gain


@kernel(nothing(NODES, LEAVES, SAMPLES, one_i64, one_i64, one_i64, one_i64, one_f64))
def grow(nodes, leaves, samples, leaf, new_leaf, new_node, feature, threshold):  # type: ignore[no-untyped-def]
    """A leaf becomes two: itself on the left, a new one on the right; what it saw goes where it belongs."""
    old, new = leaves[leaf], leaves[new_leaf]
    top = nodes[old.node]
    top.feature, top.threshold, top.left, top.right, top.leaf = feature, threshold, new_node, new_node + 1, -1
    for node, number in ((new_node, leaf), (new_node + 1, new_leaf)):
        nodes[node].feature, nodes[node].leaf = -1, number
    old.depth += 1
    old.node, new.node, new.depth = new_node, new_node + 1, old.depth
    count = min(old.heard, SEEN)
    old.heard, old.total, new.heard, new.total = 0, 0.0, 0, 0.0
    new.waiting, new.offered = 0, 0
    for row in range(leaf * SEEN, leaf * SEEN + count):
        here = leaf if samples[row].x[feature] <= threshold else new_leaf
        to = here * SEEN + leaves[here].heard
        samples[to].reward = samples[row].reward
        for column in range(X):
            samples[to].x[column] = samples[row].x[column]
        leaves[here].heard += 1
        leaves[here].total += samples[to].reward


assert ROOM > 0  # noqa: S101

# Which URLs wait in which leaf. Each leaf has a room of its own; in one that is full the newcomer takes the place of
# another or goes away, so that what is there is always an even sample of all that came.

LINKS, CRAWLS = records(LINK), records(CRAWL)


@kernel(one_i64(i64s, LINKS, NODES, LEAVES, i32s, i32s, CRAWLS, one_i64, i64s, i64s))
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


@kernel(nothing(i64s, LEAVES, i32s, i32s, i64s))
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


@kernel(nothing(LINKS, LEAVES, i32s, i32s, one_i64, one_i64, one_i64, one_f64))
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


@kernel(nothing(i32s, LEAVES, i32s))
def find_places(rooms, leaves, places):  # type: ignore[no-untyped-def]
    """Where each URL waits, as the rooms say."""
    for leaf in range(len(leaves)):
        for place in range(leaves[leaf].waiting):
            places[rooms[leaf * ROOM + place]] = leaf * ROOM + place


@kernel(one_i64(LEAVES, i32s, CRAWLS, one_i64, one_i64, one_i64, i64s))
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


@kernel(nothing(one_f64, CRAWLS, one_i64, i64s, i64s))
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


# One candidate of each leaf of a tree, and of the others as many as it takes to fill an answer.


class Drawing(Protocol):
    """Whoever draws from leaves: what it has drawn for this ask stands in the batch beside what was gathered."""

    def places(self, batch: Batch, ask: Ask) -> F64:
        """The place of each row in the draw; infinite for one that was not drawn."""
        ...

    def acceptable(self, batch: Batch, ask: Ask) -> Mask:
        """Rows that may go out."""
        ...

    def arms(self, batch: Batch) -> tuple[F64, F64]:
        """The leaf of each row, and the chance with which it was drawn from it."""
        ...


@dataclass(frozen=True)
class Leaves:
    """Refuses first and cuts then, so that others fill the answer; or cuts first (`before`), and it stays short.

    With `only_drawn` nothing fills it but what was drawn.
    """

    drawing: Drawing
    cut: str = "after"
    only_drawn: bool = False

    def sample(self, batch: Batch, ask: Ask, limit: int) -> Sample:
        wanted = ask.budget.max_urls
        place, keep = self.drawing.places(batch, ask), self.drawing.acceptable(batch, ask)
        order = np.argsort(place, kind="stable")
        if self.only_drawn:
            order = order[: np.count_nonzero(np.isfinite(place))]
        if self.cut == "before":
            order = order[:wanted]
        rows = order[keep[order]][: max(limit, wanted)]
        arm, chance = self.drawing.arms(batch)
        return Sample(rows, arm[rows], chance[rows])
