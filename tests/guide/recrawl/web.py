"""A web of pages that change by themselves, and a crawler that fetches what it is told to, under a virtual clock."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.support import ask, tell

if TYPE_CHECKING:
    from crawlguide import Guide
    from crawlguide.core.tables import F64
    from crawlguide.testing import ManualClock

DAY_S = 86_400.0
NEVER_PACED = {"default_delay_s": 0, "max_per_host": 0, "robots": "ignore", "traps": False}


def addresses(count: int, hosts: int = 20) -> list[str]:
    return [f"https://host{number % hosts}.org/pages/{number}.html" for number in range(count)]


class ChangingWeb:
    """Pages that change by chance, so many times a day each."""

    def __init__(self, urls: list[str], per_day: F64, clock: ManualClock, seed: int = 1) -> None:
        self.urls, self.per_day, self.clock = urls, per_day, clock
        self._rng = np.random.default_rng(seed)
        self._number = {url: number for number, url in enumerate(urls)}
        self.version = np.zeros(len(urls), np.int64)
        self._next = clock.now() + DAY_S * self._rng.exponential(1 / per_day)
        self.seen = np.full(len(urls), -1, np.int64)
        self.fetched: Counter[str] = Counter()
        self.last = np.full(len(urls), -np.inf)
        self.gone: set[str] = set()

    def turn(self) -> None:
        """Pages change up to now."""
        while (late := np.flatnonzero(self._next <= self.clock.now())).size:
            self.version[late] += 1
            self._next[late] += DAY_S * self._rng.exponential(1 / self.per_day[late])

    def fetch(self, url: str) -> dict[str, Any]:
        self.turn()
        self.fetched[url] += 1
        if url in self.gone:
            return {"url": url, "status": 404}
        number = self._number[url]
        self.seen[number], self.last[number] = self.version[number], self.clock.now()
        return {"url": url, "status": 200, "content_hash": f"{number} {self.version[number]}"}

    def current(self) -> F64:
        """Of which pages the copy is as the page is."""
        self.turn()
        current: F64 = (self.seen == self.version).astype(np.float64)
        return current

    def age_s(self) -> F64:
        age: F64 = self.clock.now() - self.last
        return age


def crawl(guide: Guide, web: ChangingWeb, days: float, per_ask: int, every_s: float, **more: Any) -> list[float]:
    """Ask for so many URLs every so often, and fetch them all; returns the share of current copies after each."""
    current = []
    for _ in range(int(days * DAY_S / every_s)):
        urls = [one["url"] for one in ask(guide, max_urls=per_ask, **more)["assigned_urls"]]
        if urls:
            tell(guide, *[web.fetch(url) for url in urls])
        web.clock.advance(every_s)
        current.append(float(web.current().mean()))
    return current


def known(guide: Guide, urls: list[str]) -> list[dict[str, Any]]:
    """What a guide says of how these pages change."""
    names = ("changes_per_day", "seen", "chance_changed", "refresh_value", "refresh_price")
    return [{name: guide.explain("default", url)["features"].get(name) for name in names} for url in urls]
