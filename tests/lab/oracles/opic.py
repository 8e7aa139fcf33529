"""OPIC (Abiteboul, Preda, Cobena, WWW 2003): pages hold cash and spend it on their links; the richest URL first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.definition import Fixed
from crawlguide.lab.policies._shared import Policy, Ranking, links_by_page

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.types import Lesson


class Options(Fixed, frozen=True):
    kind: str = ""


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Policy(Cash(seed))


class Cash(Ranking):
    """Seeds share 1. A page that leads nowhere takes its cash with it. Of equals a random one goes first."""

    def __init__(self, seed: int) -> None:
        super().__init__(cash=0.0, tie=0.0)
        self.rng = np.random.default_rng(seed)

    def learn(self, lesson: Lesson) -> None:
        columns, before = self.columns, len(self.columns)
        fetched, number = columns.numbers(lesson.fetches.id), columns.numbers(lesson.links.id)
        columns["tie"][before : len(columns)] = self.rng.random(len(columns) - before)
        for page, targets, _ in links_by_page(lesson, number):
            spent = 1.0 if page < 0 else columns["cash"][fetched[page]]
            columns["cash"][targets] += spent / len(targets)
        columns["cash"][fetched] = 0.0
        columns["value"][number] = columns["cash"][number] * (1.0 + 1e-6 * columns["tie"][number])
