"""In no order at all: every URL draws a number when it is first heard of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.definition import Fixed
from crawlguide.lab.policies._shared import Policy, Ranking

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.types import Lesson


class Options(Fixed, frozen=True):
    kind: str = ""


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Policy(Random(seed))


class Random(Ranking):
    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng = np.random.default_rng(seed)

    def learn(self, lesson: Lesson) -> None:
        before = len(self.columns)
        self.columns.numbers(lesson.links.id)
        self.columns["value"][before : len(self.columns)] = self.rng.random(len(self.columns) - before)
