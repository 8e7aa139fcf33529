"""A budget for every template: it grows while the template pays, and shuts it when it does not.

A template is known on its host and, without its host, in the whole crawl; each of them finely and coarsely. What has
not paid on its host may use no more than the tightest of these four budgets: what is a trap on ten hosts is one on
the eleventh. What has proven itself on its host needs no other.

    left = START · (1 − suspicion)² + GROWTH · (1 − suspicion) · paid − used
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.policy.traps import kernels
from crawlguide.policy.traps.templates import template

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I32, Mask

START = 12.0  # pages that a harmless template may use before it has to pay
GROWTH = 5.0  # pages more for each page that paid
PROVEN = 3.0  # pages that paid, and a template stands for itself
AT_ONCE = 2.0  # pages in one answer, of a template that has not proven itself and has disappointed
SUSPECT = 0.3  # from here on a template has to prove itself before it gets much in one answer
MOST = 200_000  # templates remembered
HOME = "/"
LEVELS = 4  # on the host finely, on the host coarsely, in the crawl finely, in the crawl coarsely


class Novelty:
    """Accounts of templates, by number. Number 0 stands for home pages, and for all there was no room for."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._rows = 1
        self.used, self.paid, self.suspicion = np.zeros(1), np.zeros(1), np.ones(1)
        self.levels = np.zeros((1, LEVELS), np.int32)
        self._taken = np.zeros(1, np.int32)

    def number(self, queue: str, url: str, suspicion: float = 0.0) -> int:
        """The account of a URL's template on its host."""
        fine, coarse = template(url)
        if fine == HOME:
            return 0
        own = self._row(f"{queue}{fine}")
        if own and not self.levels[own, 0]:
            self.levels[own] = own, self._row(f"{queue} {coarse}"), self._row(fine), self._row(f" {coarse}")
        self.suspicion[own] = min(self.suspicion[own], suspicion)  # the least suspicious of them speaks for all
        return own

    def _row(self, name: str) -> int:
        row = self._numbers.get(name)
        if row is None:
            if self._rows > MOST:
                return 0
            row, self._rows = self._rows, self._rows + 1
            self._numbers[name] = row
            self._fit()
        return row

    def _fit(self) -> None:
        if self._rows > len(self.used):
            more = len(self.used)
            self.used, self.paid = (np.concatenate([column, np.zeros(more)]) for column in (self.used, self.paid))
            self.suspicion = np.concatenate([self.suspicion, np.ones(more)])
            self._taken = np.zeros(len(self.used), np.int32)
            self.levels = np.concatenate([self.levels, np.zeros((more, LEVELS), np.int32)])

    def note(self, number: int, used: float, paid: float, levels: int = LEVELS) -> None:
        """A page of a template was fetched; with fewer levels, other hosts do not hear of it."""
        for row in set(self.levels[number, :levels].tolist()) - {0}:
            self.used[row] += used
            self.paid[row] += paid

    def tried(self, number: int) -> bool:
        """Has a page of that part of the host been fetched before?"""
        return bool(self.used[self.levels[number, 1]] > 0)

    def left(self, numbers: I32) -> F64:
        """How many more pages of each template may be fetched before one of them has to pay."""
        left = np.empty(len(numbers))
        kernels.count_left(
            numbers, self.used, self.paid, self.suspicion, self.levels, START, GROWTH, PROVEN, left,
        )  # fmt: skip
        return left

    def chosen(self, numbers: I32) -> Mask:
        """Which rows one answer may hold, best first: all where there is no ground for suspicion, else a few."""
        keep = np.empty(len(numbers), np.bool_)
        kernels.choose(
            numbers, self.used, self.paid, self.suspicion, self.levels,
            START, GROWTH, PROVEN, SUSPECT, AT_ONCE, self._taken, keep,
        )  # fmt: skip
        return keep

    def words(self, number: int) -> str:
        """What a person is told about an account."""
        used, paid, left = self.used[number], self.paid[number], self.left(np.array([number], np.int32))[0]
        state = "shut" if left <= 0 else f"open for {left:.0f} more"
        return f"pages made like it: {used:.0f} used, {paid:.0f} brought something new; its budget is {state}"
