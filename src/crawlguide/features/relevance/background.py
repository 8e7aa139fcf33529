"""What a judge has seen: how similar to the goal ordinary pages are, and the best pages so far. A few kilobytes.

A crawl that does well fetches one good host after the other, so most of what it meets is no sample of the web: were all
of it background, the same page would be worth less the better the crawl is. So a host's pages count less and less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.lossy_table import LossyTable

if TYPE_CHECKING:
    from crawlguide.core.notebook import Notebook, Records
    from crawlguide.core.tables import F64
    from crawlguide.features.embedding.table import F32

BEST = 50
CHANNELS = 4  # cosines of text, title and URL, and the warmth of the text
# The background before the first page: cosines of texts, titles and URLs of other subjects with a topic. For topics and
# pages of one broad field the mean is .05 to .15, for unrelated ones .0; the spread is about the same everywhere.
# Warmth depends on how long texts are, so its figures lie between those of pages of 60 and of 180 words.
PSEUDO_PAGES = 60.0
MEAN = np.array([0.08, 0.06, 0.06, 0.6])
SPREAD = np.array([0.09, 0.09, 0.08, 0.7])
LEAST_SPREAD = 0.03
NEAR_SPREAD = 0.1
OF_A_HOST = 10.0  # pages that count in full as background; the n-th counts as so many n-ths
MOST_HOSTS = 1 << 14
KEPT = 0.99  # of what was known of nearness, with each page
HOST = np.dtype([("key", np.uint64), ("pages", np.uint32)])


class Background:
    """Records on three sheets of a notebook, so that whoever keeps the notebook keeps what was learned."""

    def __init__(self, notebook: Notebook, goal: int, dims: int) -> None:
        self.kinds = {"j-sums": sums(dims), "j-best": best(dims), "j-hosts": HOST}
        self._sums, self._best, hosts = (notebook.sheet(name, kind) for name, kind in self.kinds.items())
        fresh = not self._sums.used
        self._sums.fit(1)
        self._best.fit(BEST)
        if fresh or self._sums.rows["goal"][0] != goal:
            self._sums.rows[0], self._best.rows[:BEST] = np.zeros((), sums(dims)), np.zeros(BEST, best(dims))
            self._sums.rows["goal"][0] = goal
            self._best.changed(np.arange(BEST))
            self._sums.changed(np.zeros(1, np.int64))
            hosts.rows[: hosts.used] = np.zeros((), HOST)
            hosts.changed(np.arange(hosts.used))
        self._hosts = LossyTable(HOST, hosts, MOST_HOSTS)

    @property
    def used(self) -> bool:
        return bool(self._sums.rows["count"][0].any())

    def standard(self, near_goal: F64) -> F64:
        """What is near to the goal (the channels in the last axis) as standard deviations from the background."""
        one = self._sums.rows[0]
        count = one["count"] + PSEUDO_PAGES
        mean = (one["sum"] + PSEUDO_PAGES * MEAN) / count
        square = (one["square"] + PSEUDO_PAGES * (SPREAD**2 + MEAN**2)) / count
        found: F64 = (near_goal - mean) / np.sqrt(np.maximum(square - mean**2, LEAST_SPREAD**2))
        return found

    @property
    def top(self) -> Records:
        """The best pages so far."""
        rows = self._best.rows[:BEST]
        used: Records = rows[rows["used"]]
        return used

    def nearness(self, vector: F32) -> float:
        """How much nearer a text is to the best pages than to the background, in standard deviations."""
        one = self._sums.rows[0]
        spread = (one["near_square"] + PSEUDO_PAGES * NEAR_SPREAD**2) / (one["near_count"] + PSEUDO_PAGES)
        return self._along(vector) / float(np.sqrt(spread))

    def _along(self, vector: F32) -> float:
        middle = self._sums.rows["off"][0] / max(float(self._sums.rows["count"][0, 0]), 1e-9)
        direction = self.top["vector"].mean(axis=0, dtype=np.float32) / 127 - middle
        length = float(np.linalg.norm(direction))
        return float((vector - middle) @ direction) / length if length else 0.0

    def share(self, host: int) -> float:
        """Count one more page of a host; returns the weight with which it is background."""
        slot, _ = self._hosts.claim_one(host)
        self._hosts.rows["pages"][slot] += 1
        self._hosts.sheet.changed(np.array([slot]))
        return min(1.0, OF_A_HOST / float(self._hosts.rows["pages"][slot]))

    def add_background(self, near_goal: F64, given: F64, vector: F32, weight: float, near: bool) -> None:
        """A page counts as background with some weight; `given` says which channels it has."""
        one = self._sums.rows[:1]
        if near:
            one["near_square"] = KEPT * one["near_square"] + weight * self._along(vector) ** 2
            one["near_count"] = KEPT * one["near_count"] + weight
        one["count"] += weight * given
        one["sum"] += weight * given * near_goal
        one["square"] += weight * given * near_goal**2
        one["off"] += np.float32(weight * given[0]) * vector
        self._sums.changed(np.zeros(1, np.int64))

    def add_best(self, row: int, near_goal: F64, words: float, vector: F32) -> None:
        """`words` is the share of the goal's words that it has."""
        it = self._best.rows[row : row + 1]
        it["used"], it["near_goal"], it["words"] = True, near_goal, words
        it["vector"] = np.round(vector * 127)
        self._best.changed(np.array([row]))


def sums(dims: int) -> np.dtype[np.void]:
    three = (np.float64, (CHANNELS,))
    return np.dtype(
        [("goal", np.uint64), ("count", *three), ("sum", *three), ("square", *three), ("off", np.float32, (dims,)),
         ("near_count", np.float64), ("near_square", np.float64)]
    )  # fmt: skip


def best(dims: int) -> np.dtype[np.void]:
    return np.dtype(
        [
            ("used", np.bool_),
            ("near_goal", np.float64, (CHANNELS,)),
            ("words", np.float64),
            ("vector", np.int8, (dims,)),
        ]
    )
