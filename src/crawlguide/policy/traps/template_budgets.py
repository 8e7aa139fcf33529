"""A page budget for every URL template: it grows while pages of the template bring something new, and closes it if not.

A template has four accounts: on its host and, without the host, in the whole crawl; each of them for the fine and for
the coarse template. A template that has not proven itself on its host may use no more than the tightest of the four
budgets: what is a trap on ten hosts is one on the eleventh. A template that has proven itself needs only its own.

    left = START · (1 − suspicion)² + GROWTH · (1 − suspicion) · paid − used

`used` counts fetched pages, `paid` those that brought something new. A template without budget is exhausted: it waits
behind all others, and is probed when there is nothing else. It is closed for good if its pages were mostly copies, or
after a few probes in vain.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

import numba
import numpy as np

from crawlguide.core.kernels import (
    bools,
    f64s,
    flag,
    i8s,
    i32s,
    i64s,
    kernel,
    nothing,
    one_f64,
    one_i64,
    part,
    records,
)
from crawlguide.core.notebook import Sheet

if TYPE_CHECKING:
    from crawlguide.core.notebook import Records
    from crawlguide.core.tables import F64, I8, I32, U64, Mask

START = 12.0  # pages that a harmless template may use before one has to pay
GROWTH = 5.0  # pages more for each page that paid
PROVEN = 3.0  # pages that paid, and a template needs no budget but its own
AT_ONCE = 2.0  # pages in one answer, of a template that has not proven itself and has disappointed
SUSPECT = 0.3  # from this suspicion on a template has to prove itself before it gets more than that
OWN_PROBES, ALL_PROBES = 2, 4  # in vain, of a template on its host and of its coarse template anywhere: it is closed
MOST_ACCOUNTS = 200_000
LEVELS = ("own", "part", "fine", "coarse")  # a template's accounts
ACCOUNT = np.dtype(
    [("key", np.uint64), ("used", np.float64), ("paid", np.float64), ("suspicion", np.float64)]
    + [(level, np.int32) for level in LEVELS]
    + [(count, np.int32) for count in ("pages", "copies", "probes", "taken")],
    align=True,
)
ACCOUNTS = records(ACCOUNT)
KEYS = numba.uint64[:, ::1]
OPEN, EXHAUSTED, CLOSED = 0, 1, 2  # states of a template


class TemplateBudgets:
    """Accounts by number. Number 0 stands for home pages, and for templates there was no room for: no bound."""

    def __init__(self, sheet: Sheet | None = None) -> None:
        self.sheet = Sheet(ACCOUNT) if sheet is None else sheet
        self.sheet.fit(1)
        self._last = np.zeros(1, np.int64)  # number in use
        self._index(self.sheet.used)

    def _index(self, accounts: int) -> None:
        """Index all accounts anew, with room for so many."""
        self._slots = np.zeros(1 << (4 * accounts).bit_length(), np.int32)
        self._last[0] = rebuild_index(self.sheet.rows[: self.sheet.used], self._slots)

    def excerpt(self, keys: U64) -> TemplateBudgets:
        """The accounts of these keys alone, in memory: a change there changes nothing here."""
        numbers, accounts = np.empty(keys.size, np.int32), self.sheet.rows
        find_accounts(keys.reshape(1, -1), np.full(keys.size, np.inf), self._slots, accounts, numbers)
        some = np.unique(np.concatenate([[0], numbers, *(accounts[level][numbers] for level in LEVELS)]))
        sheet = Sheet(ACCOUNT)
        sheet.fit(len(some))
        sheet.rows[: len(some)] = accounts[some]
        for level in LEVELS:
            there = sheet.rows[level][: len(some)]
            there[:] = np.where(np.isin(there, some), np.searchsorted(some, there), 0)
        return TemplateBudgets(sheet)

    @property
    def used(self) -> F64:
        return self.sheet.rows["used"]

    @property
    def paid(self) -> F64:
        return self.sheet.rows["paid"]

    def numbers(self, keys: U64, suspicion: F64) -> I32:
        """The account of each URL's template on its host, by the keys of its four accounts; new ones are opened."""
        numbers, accounts = np.empty(len(suspicion), np.int32), self._room_for(len(suspicion))
        before = int(self._last[0])
        open_accounts(keys, suspicion, self._slots, accounts, self._last, numbers)
        self._changed(numbers, before)
        return numbers

    def unchanged_numbers(self, keys: U64, suspicion: F64) -> I32:
        """The same for accounts that are open and that these URLs do not change; 0 for all others."""
        numbers = np.empty(len(suspicion), np.int32)
        find_accounts(keys, suspicion, self._slots, self.sheet.rows, numbers)
        return numbers

    def record_page(
        self,
        number: int,
        used: float,
        paid: float,
        *,
        everywhere: bool = True,
        copied: bool = False,
        probed: bool = False,
    ) -> None:
        """A page of a template was fetched; only if `everywhere`, it counts for the template on other hosts too."""
        accounts = self.sheet.rows
        add_page(accounts, number, used, paid, everywhere, copied, probed)
        own = accounts[number]
        self.sheet.changed(np.array([own["own"], own["part"], own["fine"], own["coarse"]], np.int64))

    def section_tried(self, number: int) -> bool:
        """Whether a page of the template's section of the host (its coarse template there) was fetched before."""
        return bool(self.used[self.sheet.rows["part"][number]] > 0)

    def left(self, numbers: I32) -> F64:
        """How many more pages of each template may be fetched before one of them has to pay."""
        left = np.empty(len(numbers))
        count_left(numbers, self.sheet.rows, START, GROWTH, PROVEN, left)
        return left

    def states(self, numbers: I32) -> I8:
        """OPEN, EXHAUSTED or CLOSED."""
        states = np.empty(len(numbers), np.int8)
        find_states(numbers, self.sheet.rows, START, GROWTH, PROVEN, OWN_PROBES, ALL_PROBES, states)
        return states

    def closed_when_found(self, keys: U64, suspicion: F64) -> Mask:
        """Whether each URL's template was closed at the moment that URL was found: later URLs do not change it."""
        accounts, before = self._room_for(len(suspicion)), int(self._last[0])
        numbers, closed = np.empty(len(suspicion), np.int32), np.empty(len(suspicion), np.bool_)
        open_and_check(
            keys, suspicion, self._slots, accounts, self._last, START, GROWTH, PROVEN, OWN_PROBES, ALL_PROBES,
            numbers, closed,
        )  # fmt: skip
        self._changed(numbers, before)
        return closed

    def chosen(self, numbers: I32, manual_priority: F64) -> tuple[Mask, bool]:
        """Which rows one answer may hold, best first: all of a template without suspicion, a few of others, and all
        whose priority was set by hand. Where that leaves nothing, exhausted templates are probed: then the second
        result is True.
        """
        keep, accounts = np.empty(len(numbers), np.bool_), self.sheet.rows
        kept = choose(numbers, manual_priority, accounts, START, GROWTH, PROVEN, SUSPECT, AT_ONCE, keep)
        if kept or not len(numbers):
            return keep, False
        choose_probes(numbers, self.states(numbers), accounts, keep)
        return keep, True

    def explained(self, number: int) -> str:
        """An account in words."""
        one = np.array([number], np.int32)
        used, paid, left = self.used[number], self.paid[number], self.left(one)[0]
        exhausted = "shut" if self.states(one)[0] == CLOSED else "used up: it is tried when there is nothing else"
        state = exhausted if left <= 0 else f"open for {left:.0f} more" if isfinite(left) else "without limit"
        return f"pages made like it: {used:.0f} used, {paid:.0f} brought something new; its budget is {state}"

    def _room_for(self, urls: int) -> Records:
        """All accounts, with room for those of so many URLs."""
        accounts = min(int(self._last[0]) + 4 * urls + 1, MOST_ACCOUNTS + 1)
        self.sheet.fit(accounts)
        if 2 * accounts > len(self._slots):
            self._index(accounts)
        return self.sheet.rows[: MOST_ACCOUNTS + 1]

    def _changed(self, numbers: I32, before: int) -> None:
        """These accounts changed, and all that were opened since number `before`."""
        self.sheet.changed(np.concatenate([numbers.astype(np.int64), np.arange(before + 1, int(self._last[0]) + 1)]))


@part
def left_of(account, accounts, start, growth, proven):  # type: ignore[no-untyped-def]
    """How many more pages of a template may be fetched before one of them has to pay."""
    trust = 1.0 - account.suspicion
    tightest = growth * trust * account.paid - account.used
    if account.paid < proven:
        for level in (account.part, account.fine, account.coarse):
            wider = accounts[level]
            tightest = min(tightest, growth * trust * wider.paid - wider.used)
    return start * trust * trust + tightest


@kernel(nothing(i32s, ACCOUNTS, one_f64, one_f64, one_f64, f64s))
def count_left(numbers, accounts, start, growth, proven, left):  # type: ignore[no-untyped-def]
    for row in range(len(numbers)):
        number = numbers[row]
        left[row] = left_of(accounts[number], accounts, start, growth, proven) if number != 0 else np.inf


@part
def closed_for_good(account, accounts, own_probes, all_probes):  # type: ignore[no-untyped-def]
    """Of a template without budget: its pages were mostly copies, or it has been probed in vain often enough."""
    for level in (account.own, account.part, account.fine, account.coarse):
        if 2 * accounts[level].copies > accounts[level].pages:
            return True
    return account.probes >= own_probes or accounts[account.coarse].probes >= all_probes


@kernel(nothing(i32s, ACCOUNTS, one_f64, one_f64, one_f64, one_i64, one_i64, i8s))
def find_states(numbers, accounts, start, growth, proven, own_probes, all_probes, states):  # type: ignore[no-untyped-def]
    for row in range(len(numbers)):
        account = accounts[numbers[row]]
        states[row] = OPEN
        if numbers[row] != 0 and left_of(account, accounts, start, growth, proven) <= 0:
            states[row] = CLOSED if closed_for_good(account, accounts, own_probes, all_probes) else EXHAUSTED


@part
def reset_taken(numbers, accounts):  # type: ignore[no-untyped-def]
    for number in numbers:
        accounts[number].taken = 0
        accounts[accounts[number].fine].taken = 0
        accounts[accounts[number].coarse].taken = 0


@kernel(one_i64(i32s, f64s, ACCOUNTS, one_f64, one_f64, one_f64, one_f64, one_f64, bools))
def choose(numbers, manual_priority, accounts, start, growth, proven, suspect, at_once, keep):  # type: ignore[no-untyped-def]
    """Best first: a template without ground for suspicion may give all its rows, another only a few in one answer, and
    so may all hosts together for a template that looks doubtful and has not paid anywhere.

    A row whose priority a person has set is always kept. `taken` is 0 in all accounts before and after. Returns how
    many rows are kept.
    """
    count = 0
    for row in range(len(numbers)):
        account = accounts[numbers[row]]
        keep[row] = True
        if numbers[row] != 0:
            left, fine = left_of(account, accounts, start, growth, proven), accounts[account.fine]
            section = accounts[account.part]
            faultless = section.used <= section.paid and account.suspicion < suspect
            free = faultless or account.paid >= proven
            chosen = left > 0 and (free or account.taken < min(np.ceil(left), at_once))
            if account.suspicion > 0 and account.fine != 0 and account.paid < proven and fine.paid < proven:
                chosen = chosen and fine.taken < at_once
                fine.taken += chosen
            account.taken += chosen
            keep[row] = chosen or not np.isnan(manual_priority[row])
        count += keep[row]
    reset_taken(numbers, accounts)
    return count


@kernel(nothing(i32s, i8s, ACCOUNTS, bools))
def choose_probes(numbers, states, accounts, keep):  # type: ignore[no-untyped-def]
    """One page of each coarse template that is exhausted, whatever the host."""
    for row in range(len(numbers)):
        coarse = accounts[accounts[numbers[row]].coarse]
        keep[row] = states[row] == EXHAUSTED and coarse.taken == 0
        coarse.taken += keep[row]
    reset_taken(numbers, accounts)


@kernel(nothing(ACCOUNTS, one_i64, one_f64, one_f64, flag, flag, flag))
def add_page(accounts, number, used, paid, everywhere, copied, probed):  # type: ignore[no-untyped-def]
    """Add a page to each of a template's accounts. Number 0 is no account.

    A page that pays makes up for all probes in vain before it.
    """
    own = accounts[number]
    levels = (own.own, own.part, own.fine, own.coarse)
    for place in range(4 if everywhere else 2):
        if levels[place] != 0:
            level = accounts[levels[place]]
            level.used += used
            level.paid += paid
            level.pages += 1
            level.copies += copied
            if paid >= 1.0:
                level.probes = 0
            elif probed and (place in (0, 3)):
                level.probes += 1


@part
def slot_of(key, slots, accounts):  # type: ignore[no-untyped-def]
    """The slot of the index that holds a key's number, or is free for it."""
    last = np.uint64(len(slots) - 1)
    at = key & last
    while slots[at] != 0 and accounts[slots[at]].key != key:
        at = (at + np.uint64(1)) & last
    return at


@part
def opened(key, slots, accounts, last_number):  # type: ignore[no-untyped-def]
    """The account of a key, a new one if there is none; 0: there is no room."""
    at = slot_of(key, slots, accounts)
    if slots[at] == 0 and last_number[0] + 1 < len(accounts):
        last_number[0] += 1
        slots[at] = last_number[0]
        accounts[last_number[0]].key, accounts[last_number[0]].suspicion = key, 1.0
    return slots[at]


@part
def account_of(row, keys, suspicion, slots, accounts, last_number):  # type: ignore[no-untyped-def]
    """The account of a URL's template on its host; a template is as suspicious as its least suspicious URL."""
    number = opened(keys[0, row], slots, accounts, last_number) if keys[0, row] != 0 else 0
    account = accounts[number]
    if number != 0 and account.own == 0:
        account.own = number
        account.part = opened(keys[1, row], slots, accounts, last_number)
        account.fine = opened(keys[2, row], slots, accounts, last_number)
        account.coarse = opened(keys[3, row], slots, accounts, last_number)
    account.suspicion = min(account.suspicion, suspicion[row])
    return number


@kernel(nothing(KEYS, f64s, i32s, ACCOUNTS, i64s, i32s))
def open_accounts(keys, suspicion, slots, accounts, last_number, numbers):  # type: ignore[no-untyped-def]
    for row in range(len(suspicion)):
        numbers[row] = account_of(row, keys, suspicion, slots, accounts, last_number)


@kernel(nothing(KEYS, f64s, i32s, ACCOUNTS, i64s, one_f64, one_f64, one_f64, one_i64, one_i64, i32s, bools))
def open_and_check(  # type: ignore[no-untyped-def]
    keys, suspicion, slots, accounts, last_number, start, growth, proven, own_probes, all_probes, numbers, closed
):
    for row in range(len(suspicion)):
        number = numbers[row] = account_of(row, keys, suspicion, slots, accounts, last_number)
        account = accounts[number]
        exhausted = number != 0 and left_of(account, accounts, start, growth, proven) <= 0
        closed[row] = exhausted and closed_for_good(account, accounts, own_probes, all_probes)


@kernel(nothing(KEYS, f64s, i32s, ACCOUNTS, i32s))
def find_accounts(keys, suspicion, slots, accounts, numbers):  # type: ignore[no-untyped-def]
    """Accounts that are open and at most as suspicious as these URLs; 0 for the others."""
    for row in range(len(suspicion)):
        number = slots[slot_of(keys[0, row], slots, accounts)] if keys[0, row] != 0 else 0
        numbers[row] = number if suspicion[row] >= accounts[number].suspicion else 0


@kernel(one_i64(ACCOUNTS, i32s))
def rebuild_index(accounts, slots):  # type: ignore[no-untyped-def]
    """Index accounts by their keys; returns the highest number in use."""
    highest = 0
    for number in range(1, len(accounts)):
        if accounts[number].key != 0:
            slots[slot_of(accounts[number].key, slots, accounts)] = number
            highest = number
    return highest
