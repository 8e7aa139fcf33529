"""OPIC (Abiteboul, Preda, Cobena, WWW 2003): pages hold cash and pass it on to their links; the richest URL first.

The seeds of one request share 1. value = cash / (cash + 0.0001), ties at random.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.definition import CLASSIC, Fixed
from crawlguide.core.kernels import i64s, kernel, nothing, records
from crawlguide.core.notebook import Notebook
from crawlguide.strategies.shared.cash import SEEDS, pass_on_cash
from crawlguide.strategies.shared.composition import Composition, Top
from crawlguide.strategies.shared.draws import TIE, fixed_by_id
from crawlguide.strategies.shared.learning import RecordTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64, U64
    from crawlguide.core.types import Ask, Batch, Lesson

ACCOUNT = np.dtype([("id", np.uint64), ("cash", np.float64)])
ACCOUNTS = records(ACCOUNT)
HALF = 1e-4  # the cash of a URL whose value is 1/2


class Options(Fixed, frozen=True):
    kind: str = "opic"


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Composition(Top(), Opic(seed), CLASSIC)


class Opic:
    version = "opic-1"

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        self._accounts = RecordTable(notebook.sheet("op-urls", ACCOUNT))

    def predict(self, batch: Batch) -> F64:
        cash = self._accounts.column("cash", batch.id, 0.0)
        tie = TIE * fixed_by_id(batch.id, self._seed)
        value: F64 = cash / (cash + HALF) * (1.0 - TIE) + tie * np.minimum(cash / HALF, 1.0)
        return value

    def assigned(self, batch: Batch, ask: Ask) -> None:
        """Cash moves when a page was fetched, not before."""

    def learn(self, lesson: Lesson) -> U64 | None:
        """Every page passes all its cash on to its links. One without links keeps nothing."""
        links, accounts = lesson.links, self._accounts
        pages, _ = accounts.claim(lesson.fetches.id)
        rows, _ = accounts.claim(links.id)
        payers = np.append(pages, SEEDS)[links.parent]
        spend(accounts.records, rows, links.parent, payers)
        accounts.records["cash"][pages] = 0.0
        accounts.sheet.changed(np.concatenate([pages, rows]))
        return None

    def stats(self) -> Mapping[str, float]:
        used = self._accounts.sheet.used
        return {"urls": used, "cash": float(self._accounts.records["cash"][:used].sum())}


@kernel(nothing(ACCOUNTS, i64s, i64s, i64s))
def spend(accounts, rows, parents, payers):  # type: ignore[no-untyped-def]
    pass_on_cash(accounts, rows, parents, payers)
