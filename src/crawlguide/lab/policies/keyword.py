"""Keyword best-first: words of the topic in anchor and URL, and how relevant the pages are that link here.

value = (share of the topic's words in an anchor + share of them in the URL + best relevance of a parent) / 3
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.definition import Fixed
from crawlguide.lab.policies._shared import ParentEvidence, Policy, share, topic_words

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64, I64, U64
    from crawlguide.core.types import Lesson


class Options(Fixed, frozen=True):
    kind: str = ""


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Policy(Keyword(seed, topic_words(goal)))


class Keyword(ParentEvidence):
    def __init__(self, seed: int, words: tuple[str, ...]) -> None:
        super().__init__(seed, anchor=0.0, url=0.0)
        self.words = words

    def values(self, number: I64) -> F64:
        columns = self.columns
        value: F64 = (columns["anchor"][number] + columns["url"][number] + columns["best"][number]) / 3.0
        return value

    def learn(self, lesson: Lesson) -> U64 | None:
        links, columns = lesson.links, self.columns
        number = columns.numbers(links.id)
        anchor = np.array([share(self.words, text) for text in links.anchor])
        np.maximum.at(columns["anchor"], number, anchor)
        fresh = number[lesson.fresh]
        columns["url"][fresh] = [share(self.words, url) for url in links.url[lesson.fresh]]
        return super().learn(lesson)
