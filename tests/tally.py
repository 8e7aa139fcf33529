"""A strategy that learns which hosts pay, leaves the rest to chance and keeps all of it in a notebook: a plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.definition import CLASSIC, Fixed
from crawlguide.strategies.shared.composition import Composition, Top

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crawlguide.core.definition import Goal
    from crawlguide.core.notebook import Notebook
    from crawlguide.core.tables import F64, I64, U64
    from crawlguide.core.types import Ask, Batch, Lesson

PLUG = "tests.tally"
HOST = np.dtype([("name", "S32"), ("given", "<i4"), ("pages", "<i4"), ("paid", "<f8")])
DRAWS = np.dtype(np.int64)


class Options(Fixed, frozen=True):
    kind: str = PLUG
    shy: bool = False


class Tally:
    """A host is worth the mean of its pages, more or less; what is left to chance is drawn anew with every lesson."""

    version = "tally-1"
    transferable = ("hosts",)

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.remembered = 0

    def remember(self, notebook: Notebook) -> None:
        self.remembered += 1
        self.hosts, self.draws = notebook.sheet("hosts", HOST), notebook.sheet("draws", DRAWS)
        self.draws.fit(1)
        self._number = {name.decode(): row for row, name in enumerate(self.hosts.rows["name"][: self.hosts.used])}

    def predict(self, batch: Batch) -> F64:
        rows = np.array([self._number.get(host, -1) for host in batch.hosts.name.tolist()], np.int64)
        known = np.append(self.hosts.rows, np.zeros(1, HOST))[rows]  # one that nobody knows is the last
        mean = (known["paid"] + 0.5) / (known["pages"] + 1.0) / (1.0 + 0.01 * known["given"])
        chance = np.random.default_rng([self._seed, int(self.draws.rows[0])]).random(1_000)
        luck: F64 = mean[batch.host] * 0.5 + chance[(batch.id % np.uint64(1_000)).astype(np.int64)] * 0.5
        return luck

    def assigned(self, batch: Batch, ask: Ask) -> None:
        self._add("given", batch.hosts.name[batch.host], np.ones(len(batch)))

    def learn(self, lesson: Lesson) -> U64 | None:
        if not len(lesson.fetches):  # seeds may be told twice
            return None
        judged = ~np.isnan(lesson.fetches.relevance)
        self._add("pages", lesson.fetches.host[judged], np.ones(int(judged.sum())))
        self._add("paid", lesson.fetches.host[judged], lesson.fetches.relevance[judged])
        self.draws.rows[0] += 1
        self.draws.changed(np.zeros(1, np.int64))
        return None

    def _add(self, field: str, hosts: Iterable[str], amounts: F64) -> None:
        rows = self._rows(hosts)
        np.add.at(self.hosts.rows[field], rows, amounts.astype(self.hosts.rows[field].dtype))
        self.hosts.changed(rows)

    def _rows(self, hosts: Iterable[str]) -> I64:
        """The row of each host; one that nobody knows yet gets the next."""
        return np.array([self._row(host) for host in hosts], np.int64)

    def _row(self, host: str) -> int:
        if host not in self._number:
            row = self._number[host] = self.hosts.used
            self.hosts.fit(row + 1)
            self.hosts.rows["name"][row] = host.encode()
            self.hosts.changed(np.array([row]))
        return self._number[host]


def build(options: Options, seed: int, goal: Goal) -> Composition:
    return Composition(Top(), Tally(seed), CLASSIC)
