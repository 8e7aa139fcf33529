"""Keyword best-first: words of the topic in anchor and URL, and how relevant the pages are that link here.

value = (share of the topic's words in an anchor + share of them in the URL + best relevance of a parent) / 3
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.definition import Fixed
from crawlguide.lab.policies._evidence import Evidence
from crawlguide.lab.policies._known import Policy
from crawlguide.lab.policies._words import share, topic_words

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64, I64, U64
    from crawlguide.core.types import Lesson


class Options(Fixed, frozen=True):
    kind: str = ""


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Policy(Keyword(seed, topic_words(goal)))


class Keyword(Evidence):
    def __init__(self, seed: int, words: tuple[str, ...]) -> None:
        super().__init__(seed, anchor=0.0, url=0.0)
        self.words = words

    def judged(self, number: I64) -> F64:
        known = self.known
        value: F64 = (known["anchor"][number] + known["url"][number] + known["best"][number]) / 3.0
        return value

    def learn(self, lesson: Lesson) -> U64 | None:
        links, known = lesson.links, self.known
        number = known.numbers(links.id)
        anchor = np.array([share(self.words, text) for text in links.anchor])
        np.maximum.at(known["anchor"], number, anchor)
        fresh = number[lesson.fresh]
        known["url"][fresh] = [share(self.words, url) for url in links.url[lesson.fresh]]
        return super().learn(lesson)
