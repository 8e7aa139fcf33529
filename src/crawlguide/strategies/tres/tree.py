"""The regression tree, and the queue of URLs that wait in each leaf: kernels over their records.

Only the leaf that a fetch ended in is tested for a split; a split is never taken back. A full queue keeps an even
sample of all URLs that came: a new one replaces a random other, or is forgotten.
"""

from __future__ import annotations

import numpy as np

from crawlguide.core.kernels import f32s, f64s, i32s, i64s, kernel, nothing, one_f64, one_i64, part, records
from crawlguide.strategies.shared.draws import uniform
from crawlguide.strategies.tres.records import CRAWL, LEAF, LINK, NODE, QUEUE, SAMPLE, SAMPLES, WAITING, X

NODE_RECORDS, LEAF_RECORDS, SAMPLE_RECORDS = records(NODE), records(LEAF), records(SAMPLE)
LINK_RECORDS, CRAWL_RECORDS = records(LINK), records(CRAWL)


@part
def leaf_of(nodes, x):  # type: ignore[no-untyped-def]
    at = 0
    while nodes[at].feature >= 0:
        at = nodes[at].left if x[nodes[at].feature] <= nodes[at].threshold else nodes[at].right
    return nodes[at].leaf


@kernel(one_i64(NODE_RECORDS, LEAF_RECORDS, SAMPLE_RECORDS, f32s, one_f64))
def add_sample(nodes, leaves, samples, x, reward):  # type: ignore[no-untyped-def]
    """Record a fetch in its leaf, in place of the oldest there; returns the leaf."""
    number = leaf_of(nodes, x)
    leaf = leaves[number]
    row = number * SAMPLES + leaf.heard % SAMPLES
    samples[row].reward = reward
    for column in range(X):
        samples[row].x[column] = x[column]
    leaf.heard += 1
    leaf.total += reward
    return number


@kernel(nothing(SAMPLE_RECORDS, one_i64, one_i64, f64s))
def best_split(samples, first, count, out):  # type: ignore[no-untyped-def]
    """Where the variance of rewards falls most: feature, threshold and by how much (times `count`).

    The feature is -1 where no split reduces it.
    """
    out[0], out[1], out[2] = -1.0, 0.0, 1e-9
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
                if gain > out[2]:
                    out[0], out[1], out[2] = column, here, gain


@kernel(nothing(NODE_RECORDS, LEAF_RECORDS, SAMPLE_RECORDS, one_i64, one_i64, one_i64, one_i64, one_f64))
def split_leaf(nodes, leaves, samples, leaf, new_leaf, new_node, feature, threshold):  # type: ignore[no-untyped-def]
    """A leaf becomes two: itself on the left, a new one on the right; its samples are divided."""
    old, new = leaves[leaf], leaves[new_leaf]
    top = nodes[old.node]
    top.feature, top.threshold, top.left, top.right, top.leaf = feature, threshold, new_node, new_node + 1, -1
    for node, number in ((new_node, leaf), (new_node + 1, new_leaf)):
        nodes[node].feature, nodes[node].leaf = -1, number
    old.depth += 1
    old.node, new.node, new.depth = new_node, new_node + 1, old.depth
    count = min(old.heard, SAMPLES)
    old.heard, old.total, new.heard, new.total = 0, 0.0, 0, 0.0
    new.waiting, new.offered = 0, 0
    for row in range(leaf * SAMPLES, leaf * SAMPLES + count):
        here = leaf if samples[row].x[feature] <= threshold else new_leaf
        to = here * SAMPLES + leaves[here].heard
        samples[to].reward = samples[row].reward
        for column in range(X):
            samples[to].x[column] = samples[row].x[column]
        leaves[here].heard += 1
        leaves[here].total += samples[to].reward


# The queues of leaves: `queues` holds the URLs of all leaves one behind the other, `places` where each URL waits.


@kernel(one_i64(i64s, LINK_RECORDS, NODE_RECORDS, LEAF_RECORDS, i32s, i32s, CRAWL_RECORDS, one_i64, i64s, i64s))
def enter(urls, links, nodes, leaves, queues, places, crawl, seed, changed, lost):  # type: ignore[no-untyped-def]
    """URLs (rows of `links`) go to the queues of their leaves; returns how many were lost.

    Fills in which places changed (-1: none), and which URLs were lost.
    """
    count = 0
    for row in range(len(urls)):
        url = urls[row]
        number = leaf_of(nodes, links[url].x)
        leaf = leaves[number]
        leaf.offered += 1
        place = np.int64(leaf.waiting)
        if place == QUEUE:
            place = np.int64(uniform(seed, crawl[0].draws) * leaf.offered)
            crawl[0].draws += 1
            lost[count] = url if place >= QUEUE else queues[number * QUEUE + place]
            count += 1
        else:
            leaf.waiting += 1
        changed[row] = -1
        if place < QUEUE:
            at = number * QUEUE + place
            queues[at], places[url], links[url].state, changed[row] = url, at, WAITING, at
    return count


@kernel(nothing(i64s, LEAF_RECORDS, i32s, i32s, i64s))
def leave(urls, leaves, queues, places, changed):  # type: ignore[no-untyped-def]
    """URLs that wait do so no longer: the last of the queue takes the place. Fills in which places changed."""
    for row in range(len(urls)):
        at = places[urls[row]]
        changed[row] = at
        if at >= 0:
            leaf = at // QUEUE
            leaves[leaf].waiting -= 1
            last = queues[leaf * QUEUE + leaves[leaf].waiting]
            queues[at], places[last], places[urls[row]] = last, at, -1


@kernel(nothing(LINK_RECORDS, LEAF_RECORDS, i32s, i32s, one_i64, one_i64, one_i64, one_f64))
def split_queue(links, leaves, queues, places, leaf, new_leaf, feature, threshold):  # type: ignore[no-untyped-def]
    """After a leaf has become two, the URLs in its queue are divided, in the order in which they stand."""
    old, new = leaves[leaf], leaves[new_leaf]
    stay = 0
    for place in range(old.waiting):
        url = queues[leaf * QUEUE + place]
        if links[url].x[feature] <= threshold:
            at = leaf * QUEUE + stay
            stay += 1
        else:
            at = new_leaf * QUEUE + new.waiting
            new.waiting += 1
        queues[at], places[url] = url, at
    old.waiting, old.offered, new.offered = stay, stay, new.waiting


@kernel(nothing(i32s, LEAF_RECORDS, i32s))
def find_places(queues, leaves, places):  # type: ignore[no-untyped-def]
    """Where each URL waits, read from the queues."""
    for leaf in range(len(leaves)):
        for place in range(leaves[leaf].waiting):
            places[queues[leaf * QUEUE + place]] = leaf * QUEUE + place


@kernel(one_i64(LEAF_RECORDS, i32s, CRAWL_RECORDS, one_i64, one_i64, one_i64, i64s))
def draw(leaves, queues, crawl, seed, wanted, most, drawn):  # type: ignore[no-untyped-def]
    """From each leaf one URL that waits; several, spread over its queue, where that gives fewer than wanted.

    At most `most` of one leaf. Returns how many were drawn.
    """
    nonempty, count = 0, 0
    for leaf in range(len(leaves)):
        nonempty += leaves[leaf].waiting > 0
    if nonempty == 0:
        return 0
    each = min(max(most, 1), (wanted + nonempty - 1) // nonempty) if wanted > nonempty else 1
    for leaf in range(len(leaves)):
        waiting = np.int64(leaves[leaf].waiting)
        if waiting == 0:
            continue
        mine = min(each, waiting)
        start = uniform(seed, crawl[0].draws) * waiting
        crawl[0].draws += 1
        for turn in range(mine):
            place = np.int64(start + turn * waiting / mine) % waiting
            drawn[count] = queues[leaf * QUEUE + place]
            count += 1
    return count


@kernel(nothing(one_f64, CRAWL_RECORDS, one_i64, i64s, i64s))
def epsilon_greedy(epsilon, crawl, seed, by_value, order):  # type: ignore[no-untyped-def]
    """For each place of an answer the best that is left, or with probability ε any that is left."""
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
