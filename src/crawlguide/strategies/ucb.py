"""feedstock's UCB1 bandit over URL templates: an arm is tried again while it may pay more than it did.

    index = mean reward + c · √(ln t / n),   value = v / (1 + v),   v = index + what speaks for the link

Mended: an arm that was never tried counts as tried once (n + 1) and is hoped to pay what others paid at first, as there
may be more templates than fetches; rewards are those of the crawl's goal; and what speaks for a link counts too: the
share of relevant pages among those that link here, and of the goal's words in it. `faithful` is the original: every arm
with fewer than two fetches comes before all others, and nothing else counts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.definition import CLASSIC, Factor, Fixed, Share
from crawlguide.core.notebook import Notebook
from crawlguide.core.tables import rows_of
from crawlguide.strategies.arms.arm_table import ArmTable, Kind
from crawlguide.strategies.arms.naming import Scan, by_folder, by_template
from crawlguide.strategies.shared.composition import Composition, Top

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.definition import Goal
    from crawlguide.core.notebook import Records
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64, I64, U64
    from crawlguide.core.types import Ask, Batch, Lesson

MIN_SAMPLES = 2
HOPE = 0.25  # of an arm that was never tried, until some were
UNSEEN = 1.0 + np.sqrt(2.0)
STIRRED = 0.05  # a change of the index, as a share of it, for which the arm's links are ranked anew


class Ucb:
    def __init__(self, kind: Kind, exploration: float, *, faithful: bool) -> None:
        self.version = "ucb1-faithful" if faithful else "ucb1-1"
        self._kind, self._exploration, self._faithful = kind, exploration, faithful
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        self._book = ArmTable(self._kind, notebook, self._key, self._worth)

    def predict(self, batch: Batch) -> F64:
        return self._book.predict(batch)

    def assigned(self, batch: Batch, ask: Ask) -> None:
        self._book.assigned(batch)

    def learn(self, lesson: Lesson) -> U64:
        book, heard = self._book, self._book.hear(lesson)
        book.crawl["plays"] += np.count_nonzero(~np.isnan(heard.reward) & ~heard.late)
        before, now = book.arms["value"][heard.arms], self._index(rows_of(book.arms, heard.arms))
        stirred = np.abs(now - before) > STIRRED * now
        book.arms["value"][heard.arms[stirred]] = now[stirred]
        return book.settled(heard.arms, stirred)

    def stats(self) -> Mapping[str, float]:
        return {"arms": self._book.many, "updates": int(self._book.crawl["plays"])}

    def _worth(self, rows: I64) -> F64:
        urls = self._book.urls
        index: F64 = self._index(rows_of(self._book.arms, urls["arm"][rows])) + urls["key"][rows]
        value: F64 = index / (1.0 + index)
        return value

    def _index(self, arms: Records) -> F64:
        tried = np.maximum(arms["plays"], 1.0) if self._faithful else arms["plays"] + 1.0
        time = np.log(self._book.crawl["plays"] + 1.0)
        hope = 0.0 if self._faithful else self._book.hope(HOPE)
        index: F64 = (arms["reward"] + hope) / tried + self._exploration * np.sqrt(time / tried)
        return np.where(arms["fetches"] < MIN_SAMPLES, UNSEEN, index) if self._faithful else index

    def _key(self, rows: I64) -> F64:
        urls = self._book.urls
        if self._faithful:
            return np.zeros(len(rows))
        value: F64 = (urls["total"][rows] + 0.5) / (urls["parents"][rows] + 2.0) + urls["words"][rows]
        return value


# feedstock's UCB1 bandit over URL templates.


class Options(Fixed, frozen=True):
    kind: str = "ucb"
    exploration: Factor = 0.1
    reward_decay: Share = 0.95
    faithful: bool = False


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    exploration = math.sqrt(2.0) if options.faithful else options.exploration
    naming = by_template if options.faithful else by_folder
    kind = Kind("uc-", naming, Scan(goal), seed, memory=options.reward_decay)
    return Composition(Top(), Ucb(kind, exploration, faithful=options.faithful), CLASSIC)
