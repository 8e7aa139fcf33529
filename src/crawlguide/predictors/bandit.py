"""A bandit with context: a linear model of what speaks for a link, of which one thing is what its arm pays.

    value = w · x,  and x has a place for what the arm pays

Thompson: that is drawn from what is known of the arm, Γ(what it paid + k·m) / (how often it was tried + k), anew when
something is learned of it and now and then. LinUCB: it is the mean, and c · √(xᵀ A⁻¹ x) is added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.notebook import Notebook
from crawlguide.core.tables import rows_of
from crawlguide.predictors.arms.book import Book, Kind
from crawlguide.predictors.arms.examples import examples
from crawlguide.predictors.arms.traits import NAMES, traits
from crawlguide.predictors.draws import gamma
from crawlguide.predictors.ridge import Ridge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.tables import F64, I64, U64, Mask
    from crawlguide.core.types import Batch, Lesson

FIRST = {"pages_paid": 0.4, "words": 0.3, "siblings_paid": 0.1, "arm_paid": 0.4}  # weights to begin with
TRUST = 200.0  # examples that these stand for: rewards are rare, and a model of little else than failures is no guide
ARM_PAID = NAMES.index("arm_paid")
LEAST = 0.05
REDRAWN = 8  # arms with each lesson
STIRRED = 0.05  # a change of what an arm pays for which its links are ranked anew
HOPE = 0.25  # m: what an arm that was never tried is thought to pay, until some were


class Bandit:
    def __init__(self, kind: Kind, *, linucb: bool, exploration: float, doubt: float) -> None:
        """`doubt` is k: how often an arm has to be tried before it is believed."""
        self.version = "linucb-1" if linucb else "thompson-1"
        self._kind, self._linucb, self._exploration, self._doubt = kind, linucb, exploration, doubt
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        self._model = Ridge(notebook, f"{self._kind.prefix}model", [FIRST.get(name, 0.0) for name in NAMES], TRUST)
        self._book = Book(self._kind, notebook, self._key, self._worth)

    def predict(self, batch: Batch) -> F64:
        return self._book.predict(batch)

    def given(self, batch: Batch) -> None:
        self._book.given(batch)

    def learn(self, lesson: Lesson) -> U64:
        book, told = self._book, examples(self._book, lesson)
        self._model.learn(told.x, told.reward)
        book.crawl["updates"] += len(told.reward)
        tried = np.unique(np.concatenate([told.tried, self._round()]))
        stirred = tried[self._drawn(tried)]
        arms = np.union1d(told.arms, tried)
        return book.settled(arms, np.isin(arms, stirred))

    def stats(self) -> Mapping[str, float]:
        return {"arms": self._book.many, "updates": int(self._book.crawl["updates"])}

    def _worth(self, rows: I64) -> F64:
        """Of rows that are known; of the others it does not matter."""
        x = traits(self._book, rows)
        if self._linucb:
            value = self._model.mean(x) + self._exploration * self._model.width(x)
        else:
            x[:, ARM_PAID] = self._book.arms["value"][self._book.urls["arm"][rows]]
            value = self._model.mean(x)
        return positive(value)

    def _key(self, rows: I64) -> F64:
        return positive(self._model.mean(traits(self._book, rows)))

    def _round(self) -> I64:
        """The arms whose turn it is to be drawn anew, whether anything was learned of them or not."""
        crawl, many = self._book.crawl, self._book.many
        turn = (int(crawl["cursor"]) + np.arange(min(REDRAWN, many))) % max(many, 1)
        crawl["cursor"] = (int(crawl["cursor"]) + REDRAWN) % max(many, 1)
        return np.unique(turn)

    def _drawn(self, arms: I64) -> Mask:
        """What these arms are thought to pay; and whether that differs much from what it was."""
        records, crawl = rows_of(self._book.arms, arms), self._book.crawl
        crawl["draws"] += 1
        shape = records["reward"] + self._doubt * self._book.hope(HOPE)
        paid = shape if self._linucb else gamma(shape, self._kind.seed, int(crawl["draws"]), records["id"])
        now = np.minimum(paid / (records["plays"] + self._doubt), 1.0)
        self._book.arms["value"][arms] = now
        stirred: Mask = np.abs(now - records["value"]) > STIRRED
        return stirred


def positive(value: F64) -> F64:
    """A linear model may say less than nothing: from 0 to 1, in the same order."""
    return np.where(value > LEAST, np.minimum(value, 1.0), LEAST * np.exp(np.minimum(value / LEAST - 1.0, 0.0)))
