"""feedstock's limit on the number of link groups: the smallest are merged."""

from __future__ import annotations

import re
from bisect import insort
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core.notebook import Notebook
from crawlguide.strategies.arms.arm_table import ArmTable, Heard, Kind
from crawlguide.strategies.arms.naming import hashed
from crawlguide.strategies.groups.tabular import CELL, Table, binned
from crawlguide.strategies.shared.draws import drawn
from crawlguide.strategies.shared.record_table import RecordTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.tables import F64, I64, U64
    from crawlguide.core.types import Ask, Batch, Lesson

BEGINNING = re.compile("[:/]")


def merged_by_page(names: Sequence[str], pages: I64, most: int) -> list[str]:
    """The group of each link after merging; of equally small groups of a page the first by name goes."""
    found: list[str] = []
    starts = [0, *(np.flatnonzero(np.diff(pages)) + 1).tolist(), len(names)]
    for start, end in pairwise(starts):
        mine, sizes = names[start:end], Counter(names[start:end])
        if len(sizes) > most:
            into = merges({name: sizes[name] for name in sorted(sizes)}, most)
            mine = [into[name] for name in mine]
        found += mine
    return found


def merged(names: Sequence[str], most: int) -> list[str]:
    """The group of each link of a page after merging; of equally small groups the first on the page goes."""
    into = merges(Counter(names), most)
    return [into[name] for name in names]


def merges(sizes: Mapping[str, int], most: int) -> dict[str, str]:
    """The group into which each goes: while there are too many, the smallest goes into the smallest that begins alike
    (`same:`, `cross:`, the host), else into the smallest of all."""
    members = {name: [name] for name in sizes}
    places = {name: (place, name, BEGINNING.split(name, 1)[0]) for place, name in enumerate(sizes)}
    everyone = sorted((size, *places[name]) for name, size in sizes.items())
    for _ in range(len(sizes) - most):
        size, _, small, beginning = everyone.pop(0)
        alike = next((at for at, group in enumerate(everyone) if group[3] == beginning), 0)
        larger, _, name, _ = everyone.pop(alike)
        members[name] += members.pop(small)
        insort(everyone, (larger + size, *places[name]))
    return {name: group for group, names in members.items() for name in names}


# feedstock's link groups, with its faults mended: what each group of links pays, and the best links of the best first.
#
#     value   = (Q(s, g) + share of relevant pages among those that link here + share of the goal's words) / 3
#     Q(g)    = (Σ (1 − α)^age · reward + hope) / (Σ (1 − α)^age + 1)
#     Q(s, g) = the same in the state the crawl is in, drawn towards Q(g) while little is known of it
#
# Every fetch is credited to the group of its page and no link is thrown away, so nothing of what may follow has to be
# guessed (γ). What is hoped of a group that was never tried is what others paid when they were tried first. With every
# fetch, and with chance ε, the best link of some group goes before all others.

STIRRED = 0.02  # a change of Q for which the group's links are ranked anew
NOTHING: U64 = np.zeros(0, np.uint64)
HOST = np.dtype([("id", np.uint64)])


class Chances(NamedTuple):
    """How curious it is: at the start, how much of that is left after a page, and at least; what is hoped for."""

    epsilon: float = 0.15
    decay: float = 0.995
    least: float = 0.05
    optimism: float = 0.2


class Groups:
    version = "groups-1"

    def __init__(self, kind: Kind, chances: Chances, max_pages: int) -> None:
        self._kind, self._chances, self._max_pages = kind, chances, max_pages
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        self._book = ArmTable(self._kind, notebook, self._key, self._worth)
        self._table = Table(notebook.sheet(f"{self._kind.prefix}q", CELL), self._kind.memory)
        self._hosts = RecordTable(notebook.sheet(f"{self._kind.prefix}hosts", HOST))
        if self._book.blank:
            self._book.crawl["epsilon"] = self._chances.epsilon

    def predict(self, batch: Batch) -> F64:
        return self._book.predict(batch)

    def assigned(self, batch: Batch, ask: Ask) -> None:
        self._book.assigned(batch)

    def learn(self, lesson: Lesson) -> U64:
        book, state = self._book, int(self._book.crawl["state"])
        heard = book.hear(lesson)
        arm = book.urls["arm"][heard.fetched]
        told = np.flatnonzero(~np.isnan(heard.reward) & ~heard.late & (arm >= 0))
        self._table.learn(state, book.arms["id"][arm[told]], heard.reward[told])
        self._enter(lesson, heard, told)
        now = self._quality(heard.arms)
        stirred = np.abs(now - book.arms["value"][heard.arms]) > STIRRED
        book.arms["value"][heard.arms[stirred]] = now[stirred]
        explored = [self._explored() for _ in range(self._tempted(len(told)))]
        return np.concatenate([*explored, book.settled(heard.arms, stirred)])

    def stats(self) -> Mapping[str, float]:
        """As feedstock's `get_stats()`."""
        crawl = self._book.crawl
        return {"q_table_size": len(self._table), "epsilon": float(crawl["epsilon"]), "updates": int(crawl["updates"])}

    def _enter(self, lesson: Lesson, heard: Heard, told: I64) -> None:
        """The state that the crawl is in from now on: feedstock's six values of it."""
        book, crawl = self._book, self._book.crawl
        hosts, new = self._hosts.claim(hashed(sorted(set(lesson.links.host))))
        self._hosts.sheet.changed(hosts[new])
        crawl["updates"] += len(told)
        if len(told):
            crawl["pages"] += len(told)
            crawl["reward"] += heard.reward[told].sum()
            mean, last = crawl["reward"] / crawl["pages"], heard.reward[told[-1]]
            depth, pages = book.urls["depth"][heard.fetched[told[-1]]] / 10, crawl["pages"] / self._max_pages
            crawl["state"] = binned([depth, pages, mean, last, book.waiting / 500, self._hosts.sheet.used / 50])

    def _worth(self, rows: I64) -> F64:
        """Of rows that are known; of the others it does not matter."""
        urls = self._book.urls
        value: F64 = (self._quality(urls["arm"][rows]) + urls["key"][rows]) / 3.0
        return value

    def _quality(self, groups: I64) -> F64:
        """Q of these groups, as things stand."""
        arms, hope = self._book.arms, self._book.hope(self._chances.optimism)
        usual = (arms["reward"][groups] + hope) / (arms["plays"][groups] + 1.0)
        return self._table.quality(int(self._book.crawl["state"]), arms["id"][groups], usual)

    def _key(self, rows: I64) -> F64:
        """What speaks for a link within its group."""
        urls = self._book.urls
        pages = (urls["total"][rows] + 0.5) / (urls["parents"][rows] + 2.0)
        value: F64 = pages + urls["words"][rows]
        return value

    def _tempted(self, pages: int) -> int:
        """So many pages more were fetched: with each ε falls, and with chance ε another group is to be tried."""
        crawl, passed = self._book.crawl, np.arange(pages)
        epsilon = np.maximum(crawl["epsilon"] * self._chances.decay**passed, self._chances.least)
        crawl["epsilon"] = max(crawl["epsilon"] * self._chances.decay**pages, self._chances.least)
        return int(np.count_nonzero(drawn(self._kind.seed, self._draw(), passed.astype(np.uint64)) < epsilon))

    def _explored(self) -> U64:
        """The best link of a random group goes before all others."""
        awake = self._book.awake()
        if not len(awake):
            return NOTHING
        names = self._book.arms["id"][awake]  # drawn by name: in which order they came does not count
        return self._book.to_front(self._book.first(int(awake[drawn(self._kind.seed, self._draw(), names).argmin()])))

    def _draw(self) -> int:
        crawl = self._book.crawl
        crawl["draws"] += 1
        return int(crawl["draws"])
