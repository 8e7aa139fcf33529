"""OPIC (Abiteboul, Preda, Cobena, WWW 2003): pages hold cash and spend it on their links; the richest URL first.

Each set of seeds shares 1. value = cash / (cash + 0.0001); of equals a random one goes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.definition import CLASSIC, Fixed
from crawlguide.core.kernels import i64s, kernel, nothing, records
from crawlguide.core.notebook import Notebook
from crawlguide.strategies.shared.composition import Composition, Top
from crawlguide.strategies.shared.draws import TIE, drawn_once
from crawlguide.strategies.shared.record_table import RecordTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64, U64
    from crawlguide.core.types import Ask, Batch, Lesson

ACCOUNT = np.dtype([("id", np.uint64), ("cash", np.float64)])
ACCOUNTS = records(ACCOUNT)
HALF = 1e-4  # the cash of a URL whose value is 1/2


class Opic:
    version = "opic-1"

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        self._known = RecordTable(notebook.sheet("op-urls", ACCOUNT))

    def predict(self, batch: Batch) -> F64:
        """A URL that nobody told of holds nothing."""
        rows = self._known.find(batch.id)
        cash = np.zeros(len(batch))
        cash[rows >= 0] = self._known.records["cash"][rows[rows >= 0]]
        tie = TIE * drawn_once(batch.id, self._seed)
        value: F64 = cash / (cash + HALF) * (1.0 - TIE) + tie * np.minimum(cash / HALF, 1.0)
        return value

    def assigned(self, batch: Batch, ask: Ask) -> None:
        """Cash is spent when a page has come."""

    def learn(self, lesson: Lesson) -> U64 | None:
        links = lesson.links
        pages, _ = self._known.claim(lesson.fetches.id)
        rows, _ = self._known.claim(links.id)
        spend(self._known.records, pages, rows, links.parent)
        self._known.sheet.changed(np.concatenate([pages, rows]))
        return None

    def stats(self) -> Mapping[str, float]:
        used = self._known.sheet.used
        return {"urls": used, "cash": float(self._known.records["cash"][:used].sum())}


@kernel(nothing(ACCOUNTS, i64s, i64s, i64s))
def spend(accounts, pages, rows, parents):  # type: ignore[no-untyped-def]
    """Every page gives all it has to the URLs it links to, to each once. One that leads nowhere keeps nothing."""
    start = 0
    while start < len(rows):
        end, parent = start, parents[start]
        while end < len(rows) and parents[end] == parent:
            end += 1
        different = np.unique(rows[start:end])
        cash = 1.0 if parent < 0 else accounts[pages[parent]].cash
        for row in different:
            accounts[row].cash += cash / len(different)
        start = end
    for page in pages:
        accounts[page].cash = 0.0


# The URL with the most cash first, which flows along links (OPIC).


class Options(Fixed, frozen=True):
    kind: str = "opic"


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Composition(Top(), Opic(seed), CLASSIC)
