"""An online link classifier in the manner of ACHE: words of anchor and URL, learned from links that were followed.

Logistic regression on hashed words of the anchor and the URL, with the best relevance of a page that links here. It is
fitted anew every 250 fetches, later with every eighth that is new, on at most 5 000 links of either kind. Until a
hundred links were followed, links of relevant pages go first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import xxhash

from crawlguide.core.definition import Fixed
from crawlguide.lab.policies._shared import TIE, ParentEvidence, Policy, heads, relevances

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64, I64, U64
    from crawlguide.core.types import Lesson

WORD = re.compile(r"[^\W_]+")
WORDS, BITS = 24, 16  # kept of a link; room for their weights
SIZE = 1 << BITS
FIRST, EVERY, MOST = 100, 250, 5_000
STEPS, STEP, DECAY = 60, 0.5, 1e-3


class Options(Fixed, frozen=True):
    kind: str = ""


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Policy(Classifier(seed))


class Classifier(ParentEvidence):
    def __init__(self, seed: int) -> None:
        super().__init__(seed, done=0.0, label=0.0)
        self.words = np.full((1_024, WORDS), SIZE, np.int32)
        self.weights: F64 | None = None
        self.followed: list[int] = []
        self.due = FIRST

    def learn(self, lesson: Lesson) -> U64 | None:
        columns = self.columns
        fetched = columns.numbers(lesson.fetches.id)
        columns["done"][fetched] = 1.0
        columns["label"][fetched] = relevances(lesson)
        self.followed += fetched.tolist()
        number = columns.numbers(lesson.links.id)
        self._read(lesson, number)
        super().learn(lesson)
        return self._fitted() if len(self.followed) >= self.due else None

    def values(self, number: I64) -> F64:
        if self.weights is None:
            return self.columns["best"][number]
        return sigmoid(self._logit(self.weights, number))

    def _logit(self, weights: F64, number: I64) -> F64:
        """The last two weights: a relevant page links here; always."""
        logit: F64 = weights[self.words[number]].sum(1) + weights[-2] * self.columns["best"][number] + weights[-1]
        return logit

    def _read(self, lesson: Lesson, number: I64) -> None:
        """Words are read once, on the link that found a URL."""
        if len(self.columns) > len(self.words):
            more = max(len(self.columns), 2 * len(self.words)) - len(self.words)
            self.words = np.concatenate([self.words, np.full((more, WORDS), SIZE, np.int32)])
        links = lesson.links
        for row in np.flatnonzero(lesson.fresh).tolist():
            words = hashed("a", links.anchor[row])[: WORDS // 2] + hashed("u", links.url[row])
            self.words[number[row], : min(len(words), WORDS)] = words[:WORDS]

    def _fitted(self) -> U64:
        self.due = len(self.followed) + max(EVERY, len(self.followed) // 8)
        columns, count = self.columns, len(self.columns)
        followed = np.array(self.followed)
        good = followed[columns["label"][followed] >= 0.5][-MOST:]
        bad = followed[columns["label"][followed] < 0.5][-MOST:]
        if not len(good) or not len(bad):
            return columns.ids[:0]
        self.weights = self._fit(np.concatenate([good, bad]))
        before = columns["value"][:count].copy()
        waiting = np.flatnonzero(columns["done"][:count] == 0.0)
        columns["value"][waiting] = self.values(waiting) + TIE * columns["tie"][waiting]
        return columns.ids[heads(before, columns["value"], waiting)]

    def _fit(self, rows: I64) -> F64:
        """Full gradient steps of AdaGrad from zero: small, and the same on every machine."""
        label, words = self.columns["label"][rows], self.words[rows]
        weights, squares = np.zeros(SIZE + 3), np.full(SIZE + 3, 1e-8)
        for _ in range(STEPS):
            error = sigmoid(self._logit(weights, rows)) - label
            slope = np.bincount(words.ravel(), np.repeat(error, WORDS), SIZE + 3) / len(rows)
            slope[-2], slope[-1] = (error * self.columns["best"][rows]).mean(), error.mean()
            slope += DECAY * weights
            squares += slope**2
            weights -= STEP * slope / np.sqrt(squares)
            weights[SIZE] = 0.0  # the place of no word
        return weights


def hashed(kind: str, text: str) -> list[int]:
    return [xxhash.xxh32_intdigest((kind + word).encode()) & (SIZE - 1) for word in WORD.findall(text.lower())]


def sigmoid(logit: F64) -> F64:
    value: F64 = 1.0 / (1.0 + np.exp(-np.clip(logit, -30.0, 30.0)))
    return value
