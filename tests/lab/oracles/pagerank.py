"""PageRank on what is known: the links of fetched pages, computed anew each time the crawl has grown by a tenth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.definition import Fixed
from crawlguide.lab.policies._shared import Policy, Ranking, heads, links_by_page

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64, I64, U64
    from crawlguide.core.types import Lesson

FOLLOWED = 0.85  # the chance to follow a link; else anywhere
ROUNDS = 20
GROWTH, AT_LEAST = 1.1, 20  # pages fetched since the last time


class Options(Fixed, frozen=True):
    kind: str = ""


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Policy(PageRank(seed))


class PageRank(Ranking):
    """Between two computations a new link passes on what its page had at the last one."""

    def __init__(self, seed: int) -> None:
        super().__init__(tie=0.0, done=0.0)
        self.rng = np.random.default_rng(seed)
        self.source: list[I64] = []
        self.target: list[I64] = []
        self.fetched, self.due = 0, AT_LEAST

    def learn(self, lesson: Lesson) -> U64 | None:
        columns = self.columns
        page_number, number = columns.numbers(lesson.fetches.id), columns.numbers(lesson.links.id)
        fresh = number[lesson.fresh]
        columns["tie"][fresh] = self.rng.random(len(fresh))
        columns["done"][page_number] = 1.0
        for page, targets, _ in links_by_page(lesson, number):
            if page < 0:
                columns["value"][targets] = 1.0 / len(targets)
            else:
                self._link(int(page_number[page]), targets)
        self.fetched += len(page_number)
        return self._computed() if self.fetched >= self.due else None

    def _link(self, page: int, targets: I64) -> None:
        self.source.append(np.full(len(targets), page))
        self.target.append(targets)
        self.columns["value"][targets] += FOLLOWED * self.columns["value"][page] / len(targets)

    def _computed(self) -> U64:
        self.due = max(int(self.fetched * GROWTH), self.fetched + AT_LEAST)
        columns, count = self.columns, len(self.columns)
        before = columns["value"][:count].copy()
        rank = ranked(np.concatenate(self.source), np.concatenate(self.target), count)
        columns["value"][:count] = rank * (1.0 + 1e-6 * columns["tie"][:count])
        return columns.ids[heads(before, columns["value"], np.flatnonzero(columns["done"][:count] == 0.0))]


def ranked(source: I64, target: I64, count: int) -> F64:
    """rank = (1 − f)/n + f · (what flows in + what pages without known links hold, spread over all)."""
    links = np.bincount(source, minlength=count).astype(float)
    share = np.divide(1.0, links, out=np.zeros(count), where=links > 0)
    rank = np.full(count, 1.0 / count)
    for _ in range(ROUNDS):
        lost = rank[links == 0].sum() / count
        flow = np.bincount(target, weights=(rank * share)[source], minlength=count)
        rank = (1.0 - FOLLOWED) / count + FOLLOWED * (flow + lost)
    return rank
