"""OPIC (Abiteboul, Preda, Cobena, WWW 2003): pages hold cash and spend it on their links; the richest URL first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.definition import Fixed
from crawlguide.lab.policies._known import Policy, Ranking, pages

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
        self.chance = np.random.default_rng(seed)

    def learn(self, lesson: Lesson) -> None:
        known, before = self.known, len(self.known)
        fetched, number = known.numbers(lesson.fetches.id), known.numbers(lesson.links.id)
        known["tie"][before : len(known)] = self.chance.random(len(known) - before)
        for page, targets, _ in pages(lesson, number):
            spent = 1.0 if page < 0 else known["cash"][fetched[page]]
            known["cash"][targets] += spent / len(targets)
        known["cash"][fetched] = 0.0
        known["value"][number] = known["cash"][number] * (1.0 + 1e-6 * known["tie"][number])
