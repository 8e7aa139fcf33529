"""What was met before, and with whom: bounded memory that forgets the older of two that claim one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash

from crawlguide.core.lossy_table import LossyTable
from crawlguide.core.notebook import Sheet
from crawlguide.policy.traps import kernels
from crawlguide.policy.traps.reading import read

if TYPE_CHECKING:
    from crawlguide.core.notebook import Records
    from crawlguide.core.tables import F64, I8, I32, U64, Mask


class Sightings:
    """Each key with the first owner it was met with."""

    def __init__(self, places: int = 1 << 16) -> None:
        self.keys, self.owners = np.zeros(places, np.uint64), np.zeros(places, np.uint64)
        self._last = places - 1

    def met(self, text: str, owner: int) -> bool:
        """Was this met before with another owner? From now on it was met."""
        key = xxhash.xxh3_64_intdigest(text.encode())
        place = key & self._last
        if int(self.keys[place]) == key:
            return int(self.owners[place]) != owner
        self.keys[place], self.owners[place] = key, owner
        return False


RECORD = np.dtype([("key", np.uint64), ("owner", np.uint64)])


class KeptSightings:
    """The same in a sheet that is kept; it grows as it fills."""

    def __init__(self, sheet: Sheet | None = None) -> None:
        self._places = LossyTable(RECORD, sheet)
        self.sheet = self._places.sheet

    def met(self, text: str, owner: int) -> bool:
        """Was this met before with another owner? From now on it was met."""
        place, known = self._places.claim_one(xxhash.xxh3_64_intdigest(text.encode()))
        if known:
            return int(self._places.rows["owner"][place]) != owner
        self._places.rows["owner"][place] = owner
        return False


# A budget for every template: it grows while the template pays, and shuts it when it does not.
#
# A template is known on its host and, without its host, in the whole crawl; each of them finely and coarsely. What has
# not paid on its host may use no more than the tightest of these four budgets: what is a trap on ten hosts is one on
# the eleventh. What has proven itself on its host needs no other.
#
#     left = START · (1 − suspicion)² + GROWTH · (1 − suspicion) · paid − used
#
# A template whose budget is used up rests: it waits behind all others, and is probed when there is nothing else. It is
# over for good if its pages were mostly copies, or after a few probes in vain.

START = 12.0  # pages that a harmless template may use before it has to pay
GROWTH = 5.0  # pages more for each page that paid
PROVEN = 3.0  # pages that paid, and a template stands for itself
AT_ONCE = 2.0  # pages in one answer, of a template that has not proven itself and has disappointed
SUSPECT = 0.3  # from here on a template has to prove itself before it gets much in one answer
OWN_PROBES, ALL_PROBES = 2, 4  # in vain, of a template on its host and of its kind, and it is over for good
MOST = 200_000  # templates remembered


class Novelty:
    """Accounts of templates, by number. Number 0 stands for home pages, and for all there was no room for."""

    def __init__(self, sheet: Sheet | None = None) -> None:
        self.sheet = Sheet(kernels.ACCOUNT) if sheet is None else sheet
        self._slots = np.zeros(1 << (2 * MOST).bit_length(), np.int32)  # pages of memory that nobody wrote to cost none
        self.sheet.fit(1)
        self._open = np.array([kernels.index(self.sheet.rows[: self.sheet.used], self._slots)])

    def copied(self) -> Novelty:
        """The same accounts in memory alone: what is noted there is noted nowhere else."""
        sheet = Sheet(kernels.ACCOUNT)
        sheet.fit(self.sheet.used)
        sheet.rows[: sheet.used] = self.sheet.rows[: sheet.used]
        return Novelty(sheet)

    @property
    def used(self) -> F64:
        return self.sheet.rows["used"]

    @property
    def paid(self) -> F64:
        return self.sheet.rows["paid"]

    def number(self, queue: str, url: str, suspicion: float = 0.0) -> int:
        """The account of one URL's template on a host."""
        there = read([f"https://{queue}{url[url.index('/', 8) :]}"], None)
        return int(self.numbers(there.levels, np.array([suspicion]))[0])

    def numbers(self, levels: U64, suspicion: F64) -> I32:
        """The account of each URL's template on its host, by the keys of its levels; opened where there is none."""
        found, accounts = np.empty(len(suspicion), np.int32), self._room(len(suspicion))
        before = int(self._open[0])
        kernels.open_accounts(levels, suspicion, self._slots, accounts, self._open, found)
        self._changed(found, before)
        return found

    def settled(self, levels: U64, suspicion: F64) -> I32:
        """The same of accounts that are open and that these URLs do not change; 0 for the others."""
        found = np.empty(len(suspicion), np.int32)
        kernels.find_accounts(levels, suspicion, self._slots, self.sheet.rows, found)
        return found

    def note(
        self,
        number: int,
        used: float,
        paid: float,
        *,
        everywhere: bool = True,
        copied: bool = False,
        probed: bool = False,
    ) -> None:
        """A page of a template was fetched; if not `everywhere`, other hosts do not hear of it."""
        accounts = self.sheet.rows
        kernels.note(accounts, number, used, paid, everywhere, copied, probed)
        own = accounts[number]
        self.sheet.changed(np.array([own["own"], own["part"], own["fine"], own["coarse"]], np.int64))

    def tried(self, number: int) -> bool:
        """Has a page of that part of the host been fetched before?"""
        return bool(self.used[self.sheet.rows["part"][number]] > 0)

    def left(self, numbers: I32) -> F64:
        """How many more pages of each template may be fetched before one of them has to pay."""
        left = np.empty(len(numbers))
        kernels.count_left(numbers, self.sheet.rows, START, GROWTH, PROVEN, left)
        return left

    def states(self, numbers: I32) -> I8:
        """Whether each template is open, rests (its budget is used up) or is over for good."""
        states = np.empty(len(numbers), np.int8)
        kernels.count_states(numbers, self.sheet.rows, START, GROWTH, PROVEN, OWN_PROBES, ALL_PROBES, states)
        return states

    def over_at_sight(self, levels: U64, suspicion: F64) -> Mask:
        """Whose template is over for good, of URLs that are found one after the other, by the keys of their levels."""
        accounts, before = self._room(len(suspicion)), int(self._open[0])
        found, over = np.empty(len(suspicion), np.int32), np.empty(len(suspicion), np.bool_)
        kernels.over_at_sight(
            levels, suspicion, self._slots, accounts, self._open, START, GROWTH, PROVEN, OWN_PROBES, ALL_PROBES,
            found, over,
        )  # fmt: skip
        self._changed(found, before)
        return over

    def chosen(self, numbers: I32, given: F64) -> tuple[Mask, bool]:
        """Which rows one answer may hold, best first: all where there is no ground for suspicion, else a few; and
        those whose priority was set by hand. Where nothing is left, some of the templates that rest are probed: then
        the second is True.
        """
        keep, accounts = np.empty(len(numbers), np.bool_), self.sheet.rows
        kept = kernels.choose(numbers, given, accounts, START, GROWTH, PROVEN, SUSPECT, AT_ONCE, keep)
        if kept or not len(numbers):
            return keep, False
        kernels.probe(numbers, self.states(numbers), accounts, keep)
        return keep, True

    def words(self, number: int) -> str:
        """What a person is told about an account."""
        used, paid, left = self.used[number], self.paid[number], self.left(np.array([number], np.int32))[0]
        over = self.states(np.array([number], np.int32))[0] == kernels.IS_OVER
        rests = "shut" if over else "used up: it is tried when there is nothing else"
        state = rests if left <= 0 else f"open for {left:.0f} more"
        return f"pages made like it: {used:.0f} used, {paid:.0f} brought something new; its budget is {state}"

    def _room(self, urls: int) -> Records:
        """All accounts, with room for those of so many URLs."""
        self.sheet.fit(min(int(self._open[0]) + 4 * urls + 1, MOST + 1))
        return self.sheet.rows[: MOST + 1]

    def _changed(self, numbers: I32, before: int) -> None:
        """These accounts, and all that were opened since."""
        self.sheet.changed(np.concatenate([numbers.astype(np.int64), np.arange(before + 1, int(self._open[0]) + 1)]))
