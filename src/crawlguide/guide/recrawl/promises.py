"""What is promised of the age of copies: which pages a promise is for, whether it is kept, and whether it can be.

A promise costs so many fetches a day: its pages, times its share, divided by its age. It can be kept while the budget
of the crawl and the pause of each host have room for that; whether they have follows from numbers that are known before
any copy is too old.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import Struct

from crawlguide.core.patterns import Patterns
from crawlguide.freshness.rates import DAY_S
from crawlguide.guide.recrawl.price import Room

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.definition import Policy, Promise
    from crawlguide.core.tables import F64, I64
    from crawlguide.guide.recrawl.known_pages import KnownPages
    from crawlguide.guide.recrawl.price import Price

AHEAD = 0.85  # of the age after which a page is brought: until it is fetched time passes, too


class Pages(NamedTuple):
    """The pages of a promise, or some of them that stand for so many each."""

    rates: np.ndarray[Any, Any]
    each: float

    @property
    def total(self) -> int:
        return round(len(self.rates) * self.each)


class PromiseState(Struct, frozen=True):
    """How things stand with one promise."""

    max_age_s: float
    share: float
    patterns: tuple[str, ...]
    pages: int
    kept_share: float  # of its pages, not older than promised now
    kept: bool
    needs_per_day: float  # fetches
    has_per_day: float | None  # fetches that the crawl can make for it; null: no bound is known
    possible: bool
    words: str


class Promises:
    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.promises = policy.promises if policy.recrawl == "monitor" else ()
        self._patterns = [
            Patterns(one.patterns, f"policy.promises[{row}].patterns") if one.patterns else None
            for row, one in enumerate(self.promises)
        ]
        self.max_age_s: F64 = np.array([np.inf, *(one.max_age_s for one in self.promises)])

    def __bool__(self) -> bool:
        return bool(self.promises)

    def of(self, urls: Sequence[str]) -> I64:
        """The number of the first promise that holds for each URL, from 1; 0: none."""
        if not self.promises:
            return np.zeros(len(urls), np.int64)
        return np.array([self._first(url) for url in urls], np.int64)

    def _first(self, url: str) -> int:
        for number, patterns in enumerate(self._patterns, 1):
            if patterns is None or patterns.found(url):
                return number
        return 0

    def owed_from(self, numbers: I64, seen: F64) -> F64:
        """From which instant on each page is brought for its promise, whatever it is worth; infinite: never."""
        return seen + AHEAD * self.max_age_s[np.where(numbers < len(self.max_age_s), numbers, 0)]

    def states(self, known: KnownPages, price: Price, at: float) -> list[PromiseState]:
        """Of very many pages a part is counted, evenly. What an earlier promise costs, later ones do not have."""
        rows, each = known.sample()
        rows = rows[known.rates.pages.rows["gone"][rows] == 0]
        pages, numbers = known.rates.pages.rows[rows], known.pages.rows["promise"][rows]
        states, taken = list[PromiseState](), 0.0
        for number, promise in enumerate(self.promises, 1):
            mine = Pages(pages[numbers == number], each)
            needs = mine.total * promise.share / (promise.max_age_s / DAY_S)
            polite = _polite(mine, promise, known, self._policy.default_delay_s)
            room = min(polite, *(Room(one.per_day - taken, one.why) for one in price.rooms))
            states.append(_state(promise, mine, needs, room, at))
            taken += needs
        return states


def _state(promise: Promise, pages: Pages, needs: float, room: Room, at: float) -> PromiseState:
    kept_share = float(np.mean(at - pages.rates["seen"] <= promise.max_age_s)) if pages.total else 1.0
    has, possible, kept = max(room.per_day, 0.0), needs <= max(room.per_day, 0.0), kept_share >= promise.share
    words = _words(kept, possible, needs, has, room.why)
    return PromiseState(
        promise.max_age_s, promise.share, promise.patterns, pages.total, round(kept_share, 4), kept, round(needs, 1),
        None if has == inf else round(has, 1), possible, words,
    )  # fmt: skip


def _polite(pages: Pages, promise: Promise, known: KnownPages, delay_s: float) -> Room:
    """What the pause between two fetches of a host leaves of the fetches that are needed."""
    if not pages.total or not delay_s:
        return Room(inf, "")
    parents = known.rates.groups.rows["parent"]
    hosts = pages.each * np.bincount(np.maximum(parents[pages.rates["group"]], 0))
    needed, most = hosts * promise.share / (promise.max_age_s / DAY_S), DAY_S / delay_s
    if needed.max() <= most:
        return Room(inf, "")
    return Room(
        float(np.minimum(needed, most).sum()), f"a pause of {delay_s:g} s between two fetches of a host leaves room for"
    )


def _words(kept: bool, possible: bool, needs: float, has: float, reason: str) -> str:
    now = "kept" if kept else "not kept now, though it can be"
    if not possible:
        return (
            f"it cannot be kept: it costs {needs:,.0f} fetches a day, and {reason} {has:,.0f}; "
            f"{needs - has:,.0f} more a day would keep it"
        )
    return f"it is {now}; it costs {needs:,.0f} fetches a day"
