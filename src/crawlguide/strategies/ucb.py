"""feedstock's UCB1 bandit over URL templates: an arm is tried again while it may pay more than it did.

    index = mean reward + c · √(ln t / n),   value = v / (1 + v),   v = index + what speaks for the link

Unlike feedstock's, an arm that was never tried counts as tried once (n + 1) with the reward that others brought at
first, as there may be more templates than fetches; rewards are those of the crawl's goal; and what speaks for a link
counts too: the share of relevant pages among those that link here, and of the goal's words in it. `faithful` is the
original: every arm with fewer than two fetches comes before all others, and nothing else counts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.definition import CLASSIC, Factor, Fixed, Share
from crawlguide.core.notebook import Notebook
from crawlguide.core.tables import rows_of
from crawlguide.strategies.arms.arm_table import ArmSettings, ArmTable
from crawlguide.strategies.arms.link_features import Scan
from crawlguide.strategies.arms.naming import by_folder, by_template
from crawlguide.strategies.shared.composition import Composition, Top

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.definition import Goal
    from crawlguide.core.notebook import Records
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64, I64, U64
    from crawlguide.core.types import Ask, Batch, Lesson

MIN_SAMPLES = 2
UNTRIED = 0.25  # the reward expected of an arm that was never tried, until some were
UNSEEN = 1.0 + np.sqrt(2.0)
CHANGED = 0.05  # a change of the index, as a share of it, for which the arm's links are ranked again


class Options(Fixed, frozen=True):
    kind: str = "ucb"
    exploration: Factor = 0.1
    reward_decay: Share = 0.95
    faithful: bool = False


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    exploration = math.sqrt(2.0) if options.faithful else options.exploration
    naming = by_template if options.faithful else by_folder
    settings = ArmSettings("uc-", naming, Scan(goal), seed, decay=options.reward_decay)
    return Composition(Top(), Ucb(settings, exploration, faithful=options.faithful), CLASSIC)


class Ucb:
    def __init__(self, settings: ArmSettings, exploration: float, *, faithful: bool) -> None:
        self.version = "ucb1-faithful" if faithful else "ucb1-1"
        self._settings, self._exploration, self._faithful = settings, exploration, faithful
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        self._table = ArmTable(self._settings, notebook, self._key, self._value)

    def predict(self, batch: Batch) -> F64:
        return self._table.predict(batch)

    def assigned(self, batch: Batch, ask: Ask) -> None:
        self._table.assigned(batch)

    def learn(self, lesson: Lesson) -> U64:
        table, learned = self._table, self._table.learn(lesson)
        table.crawl["plays"] += np.count_nonzero(learned.counted)
        before, now = table.arms["value"][learned.arms], self._index(rows_of(table.arms, learned.arms))
        changed = np.abs(now - before) > CHANGED * now
        table.arms["value"][learned.arms[changed]] = now[changed]
        return table.to_rank(learned.arms, changed)

    def stats(self) -> Mapping[str, float]:
        return {"arms": self._table.count, "updates": int(self._table.crawl["plays"])}

    def _value(self, rows: I64) -> F64:
        urls = self._table.urls
        index: F64 = self._index(rows_of(self._table.arms, urls["arm"][rows])) + urls["key"][rows]
        value: F64 = index / (1.0 + index)
        return value

    def _index(self, arms: Records) -> F64:
        tried = np.maximum(arms["plays"], 1.0) if self._faithful else arms["plays"] + 1.0
        time = np.log(self._table.crawl["plays"] + 1.0)
        prior = 0.0 if self._faithful else self._table.expected_first_reward(UNTRIED)
        index: F64 = (arms["reward"] + prior) / tried + self._exploration * np.sqrt(time / tried)
        return np.where(arms["fetches"] < MIN_SAMPLES, UNSEEN, index) if self._faithful else index

    def _key(self, rows: I64) -> F64:
        urls = self._table.urls
        if self._faithful:
            return np.zeros(len(rows))
        value: F64 = (urls["total"][rows] + 0.5) / (urls["parents"][rows] + 2.0) + urls["words"][rows]
        return value
