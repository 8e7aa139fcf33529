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
from crawlguide.policy.traps.reading import read

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I32, U64, Mask

START = 12.0  # pages that a harmless template may use before it has to pay
GROWTH = 5.0  # pages more for each page that paid
PROVEN = 3.0  # pages that paid, and a template stands for itself
AT_ONCE = 2.0  # pages in one answer, of a template that has not proven itself and has disappointed
SUSPECT = 0.3  # from here on a template has to prove itself before it gets much in one answer
MOST = 200_000  # templates remembered


class Novelty:
    """Accounts of templates, by number. Number 0 stands for home pages, and for all there was no room for."""

    def __init__(self) -> None:
        self._open = np.zeros(1, np.int64)
        self._slots = np.zeros(1 << (2 * MOST).bit_length(), np.int32)  # pages of memory that nobody wrote to cost none
        self._accounts = np.zeros(MOST + 1, kernels.ACCOUNT)
        self.used, self.paid = self._accounts["used"], self._accounts["paid"]

    def number(self, queue: str, url: str, suspicion: float = 0.0) -> int:
        """The account of one URL's template on a host."""
        there = read([f"https://{queue}{url[url.index('/', 8) :]}"], None)
        return int(self.numbers(there.levels, np.array([suspicion]))[0])

    def numbers(self, levels: U64, suspicion: F64) -> I32:
        """The account of each URL's template on its host, by the keys of its levels; opened where there is none."""
        found = np.empty(len(suspicion), np.int32)
        kernels.open_accounts(levels, suspicion, self._slots, self._accounts, self._open, found)
        return found

    def settled(self, levels: U64, suspicion: F64) -> I32:
        """The same of accounts that are open and that these URLs do not change; 0 for the others."""
        found = np.empty(len(suspicion), np.int32)
        kernels.find_accounts(levels, suspicion, self._slots, self._accounts, found)
        return found

    def note(self, number: int, used: float, paid: float, everywhere: bool = True) -> None:
        """A page of a template was fetched; if not `everywhere`, other hosts do not hear of it."""
        kernels.note(self._accounts, number, used, paid, everywhere)

    def tried(self, number: int) -> bool:
        """Has a page of that part of the host been fetched before?"""
        return bool(self.used[self._accounts["part"][number]] > 0)

    def left(self, numbers: I32) -> F64:
        """How many more pages of each template may be fetched before one of them has to pay."""
        left = np.empty(len(numbers))
        kernels.count_left(numbers, self._accounts, START, GROWTH, PROVEN, left)
        return left

    def left_at_sight(self, levels: U64, suspicion: F64) -> F64:
        """The same of URLs that are found one after the other, by the keys of their levels."""
        left = np.empty(len(suspicion))
        kernels.left_at_sight(levels, suspicion, self._slots, self._accounts, self._open, START, GROWTH, PROVEN, left)
        return left

    def chosen(self, numbers: I32, given: F64) -> Mask:
        """Which rows one answer may hold, best first: all where there is no ground for suspicion, else a few; and
        those whose priority was set by hand.
        """
        keep = np.empty(len(numbers), np.bool_)
        kernels.choose(numbers, given, self._accounts, START, GROWTH, PROVEN, SUSPECT, AT_ONCE, keep)
        return keep

    def words(self, number: int) -> str:
        """What a person is told about an account."""
        used, paid, left = self.used[number], self.paid[number], self.left(np.array([number], np.int32))[0]
        state = "shut" if left <= 0 else f"open for {left:.0f} more"
        return f"pages made like it: {used:.0f} used, {paid:.0f} brought something new; its budget is {state}"
