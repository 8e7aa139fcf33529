"""A queue: first heard of, first fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core.definition import Fixed
from crawlguide.lab.policies._shared import Policy, Ranking

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.types import Lesson


class Options(Fixed, frozen=True):
    kind: str = ""


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Policy(Queue())


class Queue(Ranking):
    def learn(self, lesson: Lesson) -> None:
        number = self.columns.numbers(lesson.links.id)
        self.columns["value"][number] = 1.0 / (1.0 + number)
