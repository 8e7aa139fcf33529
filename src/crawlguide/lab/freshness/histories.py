"""When every page of a web changed: what the virtual clock of `lab freshness` runs over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64, I64, Rows

DAYS_AFTER_GONE = 30.0  # so long a page counts that is no more: a copy of it should go


@dataclass(frozen=True)
class Histories:
    """Pages as columns, times in days from the beginning of the replay.

    The changes of page i are `at[first[i] : first[i + 1]]`, rising; that a page goes is the last of its changes.
    `rates` are the true rates for each day, of made-up webs only.
    """

    name: str
    urls: Sequence[str]
    importance: F64
    born: F64  # when the page becomes known; 0 for those known from the beginning
    gone: F64  # infinite for a page that stays
    first: I64
    at: F64
    days: int
    rates: DailyRates | None = None
    mislabelled: float = 0.0  # share of visits that tell the wrong thing

    def __len__(self) -> int:
        return len(self.born)

    @property
    def counts_until(self) -> F64:
        """Until when a page counts in the figures, whatever a policy did."""
        return np.minimum(self.gone + DAYS_AFTER_GONE, self.days)

    @property
    def events(self) -> tuple[I64, F64]:
        """All changes in the order of time: their pages, and when."""
        pages = np.repeat(np.arange(len(self)), np.diff(self.first))
        order = np.argsort(self.at, kind="stable")
        return pages[order], self.at[order]

    def take(self, rows: Rows) -> Histories:
        """Some of the pages."""
        lengths = np.diff(self.first)[rows]
        starts = np.repeat(self.first[rows], lengths)
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return replace(
            self, urls=[self.urls[row] for row in rows.tolist()], importance=self.importance[rows],
            born=self.born[rows], gone=self.gone[rows], first=offsets(lengths), at=self.at[starts + within],
            rates=None if self.rates is None else self.rates.take(rows),
        )  # fmt: skip


@dataclass(frozen=True)
class DailyRates:
    """True rates, changes a day, each set from a day on."""

    since: F64
    rates: F64  # [set, page]

    def on(self, day: float) -> F64:
        rates: F64 = self.rates[int(np.searchsorted(self.since, day, "right")) - 1]
        return rates

    def take(self, rows: Rows) -> DailyRates:
        return DailyRates(self.since, self.rates[:, rows])


def offsets(lengths: I64) -> I64:
    """Where each of several runs begins when they lie one after the other, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def from_events(pages: I64, at: F64, count: int) -> tuple[I64, F64]:
    """The columns `first` and `at` of events in any order."""
    order = np.lexsort((at, pages))
    return offsets(np.bincount(pages, minlength=count)), at[order]
