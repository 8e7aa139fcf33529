"""A reference, not a policy: it follows an order that was made by somebody who knew the whole web."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls
from crawlguide.core.definition import Fixed
from crawlguide.lab.policies._known import Policy, Ranking

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.types import Lesson


class Options(Fixed, frozen=True):
    kind: str = ""
    order: tuple[str, ...] = ()  # URLs, best first


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Policy(InOrder(options.order))


class InOrder(Ranking):
    """What is not in the order is worth nothing."""

    def __init__(self, order: tuple[str, ...]) -> None:
        super().__init__()
        self.place = {urls.identity(url): place for place, url in enumerate(order)}

    def learn(self, lesson: Lesson) -> None:
        number, last = self.known.numbers(lesson.links.id), len(self.place)
        places = np.array([self.place.get(one, last) for one in lesson.links.id.tolist()])
        self.known["value"][number] = 1.0 - places / max(last, 1)
