"""The regression tree: from features to a leaf, and when a leaf becomes two.

Only the leaf that has just seen something is tested; a split is never taken back.
"""

import numba
import numpy as np

from crawlguide.core.kernels import F32, F64, I64, kernel, matrix_f32, nothing, one_f64, one_i64, part, records
from crawlguide.predictors.tres.records import LEAF, NODE, ROOM, SAMPLE, SEEN, X

NODES, LEAVES, SAMPLES = records(NODE), records(LEAF), records(SAMPLE)
I32 = numba.int32[::1]


@part
def leaf_of(nodes, x):  # type: ignore[no-untyped-def]
    at = 0
    while nodes[at].feature >= 0:
        at = nodes[at].left if x[nodes[at].feature] <= nodes[at].threshold else nodes[at].right
    return nodes[at].leaf


@kernel(nothing(NODES, matrix_f32, I64))
def leaves_of(nodes, x, found):  # type: ignore[no-untyped-def]
    for row in range(len(x)):
        found[row] = leaf_of(nodes, x[row])


@kernel(one_i64(NODES, LEAVES, SAMPLES, F32, one_f64))
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


@kernel(nothing(SAMPLES, one_i64, one_i64, F64))
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
