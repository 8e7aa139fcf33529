"""TRES's tree frontier: a regression tree over experience, whose leaves hold the URLs that wait."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import F64

MAX_DEPTH, MIN_SAMPLES = 18, 5


@dataclass
class Node:
    """A leaf, until it splits: then rows with x[feature] ≤ threshold go left."""

    depth: int = 0
    waiting: list[int] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)
    feature: int = -1
    threshold: float = 0.0
    left: Node | None = None
    right: Node | None = None


class Tree:
    """Only the leaf that gets an experience is tested for a split; nothing is ever merged."""

    def __init__(self) -> None:
        self.root = Node()
        self.leaves = [self.root]

    def leaf(self, x: F64) -> Node:
        node = self.root
        while node.left is not None and node.right is not None:
            node = node.left if x[node.feature] <= node.threshold else node.right
        return node

    def experience(self, number: int, features: F64, rewards: F64) -> None:
        """A fetched URL and its reward; `features` and `rewards` are the columns of all."""
        node = self.leaf(features[number])
        node.seen.append(number)
        if len(node.seen) >= MIN_SAMPLES and node.depth < MAX_DEPTH:
            seen = np.array(node.seen)
            found = best_split(features[seen], rewards[seen])
            if found is not None:
                self._split(node, *found, features)

    def _split(self, node: Node, feature: int, threshold: float, features: F64) -> None:
        node.feature, node.threshold = feature, threshold
        node.left, node.right = Node(node.depth + 1), Node(node.depth + 1)
        for members, name in ((node.waiting, "waiting"), (node.seen, "seen")):
            rows = np.array(members, np.int64)
            goes_left = features[rows, feature] <= threshold
            setattr(node.left, name, rows[goes_left].tolist())
            setattr(node.right, name, rows[~goes_left].tolist())
        node.waiting, node.seen = [], []
        self.leaves.remove(node)
        self.leaves += [node.left, node.right]


def best_split(x: F64, reward: F64) -> tuple[int, float] | None:
    """The feature and value with the largest reduction of variance; None where nothing reduces it."""
    total, count = reward.sum(), len(reward)
    best, found = 1e-12, None
    for feature in range(x.shape[1]):
        order = np.argsort(x[:, feature], kind="stable")
        value, sums = x[order, feature], np.cumsum(reward[order])
        ends = np.flatnonzero(np.diff(value) > 0)
        if not len(ends):
            continue
        left = ends + 1
        gain = sums[ends] ** 2 / left + (total - sums[ends]) ** 2 / (count - left) - total**2 / count
        top = int(gain.argmax())
        if gain[top] > best:
            best, found = float(gain[top]), (feature, float(value[ends[top]]))
    return found
