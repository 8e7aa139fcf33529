"""What is promised of the age of copies: which pages a promise is for, whether it is kept, and whether it can be.

A promise costs so many fetches a day: its pages, times its share, divided by its age. It can be kept while the budget
of the crawl and the pause of each host have room for that; whether they have follows from numbers that are known before
any copy is too old.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from crawlguide.core.patterns import Patterns
from crawlguide.freshness.rates import DAY_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.definition import Policy
    from crawlguide.core.tables import F64, I64
    from crawlguide.guide.recrawl.known_pages import KnownPages
    from crawlguide.guide.recrawl.price import Price

AHEAD = 0.85  # of the age after which a page is brought: until it is fetched time passes, too
ENOUGH_S = 3_600.0  # for which a crawl must have been asked before its pace says something


class PromiseState(Struct, frozen=True):
    """How things stand with one promise."""

    max_age_s: float
    share: float
    patterns: tuple[str, ...]
    pages: int
    kept_share: float  # of its pages, not older than promised now
    kept: bool
    needs_per_day: float  # fetches
    has_per_day: float | None  # fetches that the crawl can make for it; null: nobody knows yet
    possible: bool | None
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
        return seen + AHEAD * self.max_age_s[numbers]

    def states(self, known: KnownPages, price: Price, at: float) -> list[PromiseState]:
        """O(pages), some milliseconds for a million."""
        used = known.pages.used
        pages, rates = known.pages.rows[:used], known.rates.pages.rows[:used]
        alive = (pages["key"] > 0) & (rates["gone"] == 0)
        return [
            self._state(number, rates[alive & (pages["promise"] == number)], known, price, at)
            for number in range(1, len(self.promises) + 1)
        ]

    def _state(self, number: int, pages: np.ndarray, known: KnownPages, price: Price, at: float) -> PromiseState:
        promise, count = self.promises[number - 1], len(pages)
        kept_share = float(np.mean(at - pages["seen"] <= promise.max_age_s)) if count else 1.0
        needs = count * promise.share / (promise.max_age_s / DAY_S)
        has, reason = self._room(pages, promise.share, promise.max_age_s, known, price)
        possible = None if has is None else needs <= has
        kept = kept_share >= promise.share
        words = _words(kept, possible, needs, has, reason)
        return PromiseState(
            promise.max_age_s, promise.share, promise.patterns, count, round(kept_share, 4), kept, round(needs, 1),
            None if has is None else round(has, 1), possible, words,
        )  # fmt: skip

    def _room(
        self, pages: np.ndarray, share: float, max_age_s: float, known: KnownPages, price: Price
    ) -> tuple[float | None, str]:
        """Fetches a day for a promise: what politeness permits, and the budget; and which of them is the bound."""
        needs = len(pages) * share / (max_age_s / DAY_S)
        polite, reason = _polite(pages, share, max_age_s, known, self._policy.default_delay_s)
        if price.per_day is not None and price.per_day < polite:
            polite, reason = price.per_day, "policy.recrawl_per_day and recrawl_share permit"
        if price.age_s >= ENOUGH_S and needs > price.pace and price.pace < polite:
            return price.pace, "crawlers take"
        return polite, reason


def _polite(pages: np.ndarray, share: float, max_age_s: float, known: KnownPages, delay_s: float) -> tuple[float, str]:
    """What the pause between two fetches of a host leaves of the fetches that are needed."""
    if not len(pages) or not delay_s:
        return float("inf"), ""
    parents = known.rates.groups.rows["parent"]
    hosts = np.bincount(np.maximum(parents[pages["group"]], 0))
    needed, most = hosts * share / (max_age_s / DAY_S), DAY_S / delay_s
    if needed.max() <= most:
        return float("inf"), ""
    return float(np.minimum(needed, most).sum()), f"a pause of {delay_s:g} s between two fetches of a host permits"


def _words(kept: bool, possible: bool | None, needs: float, has: float | None, reason: str) -> str:
    now = "kept" if kept else "not kept yet" if possible else "broken"
    if possible is False and has is not None:
        return (
            f"it cannot be kept: it costs {needs:,.0f} fetches a day, {reason} {has:,.0f}; "
            f"room for {needs - has:,.0f} more a day would keep it"
        )
    return f"it is {now}; it costs {needs:,.0f} fetches a day"
