"""The price of a fetch: what a page must be worth to be fetched again, in weighted days of freshness.

Where the crawl has a budget for fetching again (`policy.recrawl_per_day`, `policy.recrawl_share`), the price follows
what the last page was worth that found a place in it, over an eighth of a day's budget. Without one the price is what a
fetch brings elsewhere: the mean worth of the new pages that the crawl gives out, and nothing for each place in an
answer that stayed empty. So one budget is split by marginal value.

A host that gets behind with its pages has a price of its own above that: politeness has its price, too.
"""

from __future__ import annotations

from math import exp, expm1, inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core.definition import AUTO
from crawlguide.core.lossy_table import LossyTable

if TYPE_CHECKING:
    from crawlguide.core.definition import Policy
    from crawlguide.core.notebook import Notebook
    from crawlguide.core.tables import F64, U64

DAY_S = 86_400.0
STATE = np.dtype(
    [
        ("at", np.float64),  # of the newest ask
        ("price", np.float64),
        ("tokens", np.float64),  # fetches that may be made again by now
        ("worth", np.float64),  # mean worth of a place in an answer, without fetching again
        ("pace", np.float64),  # URLs given out a day, over about a day
        ("asked", np.float64),  # URLs asked for a day, in the same way
        ("since", np.float64),  # of the first ask
        ("renewed", np.float64),  # row from which on pages have to be looked at for new promises; negative: none
    ],
    align=True,
)
HOST = np.dtype([("key", np.uint64), ("level", np.float64), ("waiting", np.int64)], align=True)
MOST_HOSTS = 1 << 15
PLACES = 500.0  # in answers, over which the mean worth is taken
PACE_S = DAY_S
ENOUGH_S, FULL = 3_600.0, 0.9  # for which, and how fully, asks are answered before that says how much crawlers take
SAVED_S = 3_600.0  # for how long fetches that were not made may be made up for
QUICKNESS, RELAXED = 8.0, 0.99
BEHIND = 8  # pages of one host that wait to be fetched again, from which on its price rises
DEARER, CHEAPER, DEAREST = 0.05, 0.02, 20.0


FIRST = np.zeros(1, np.int64)


class Room(NamedTuple):
    """Fetches a day that something leaves."""

    per_day: float
    why: str


class Price:
    def __init__(self, notebook: Notebook, policy: Policy) -> None:
        self._sheet = notebook.sheet("fr-price", STATE)
        is_new = not self._sheet.used
        self._sheet.fit(1)
        self._state = dict(zip(STATE.names or (), map(float, self._sheet.rows[0].tolist()), strict=True))
        if is_new:
            self._set(renewed=-1.0)
        self._hosts = LossyTable(HOST, notebook.sheet("fr-hosts", HOST), MOST_HOSTS)
        self.policy = policy

    def _get(self, name: str) -> float:
        return self._state[name]

    def _set(self, **values: float) -> None:
        self._state |= values
        self._sheet.rows[0] = tuple(self._state.values())
        self._sheet.changed(FIRST)

    @property
    def per_day(self) -> float | None:
        """Fetches again that the budget has for a day; None: no bound."""
        policy, bounds = self.policy, list[float]()
        if policy.recrawl_per_day:
            bounds.append(float(policy.recrawl_per_day))
        if policy.recrawl_share != AUTO:
            bounds.append(max(policy.recrawl_share * self.pace, 1.0))
        return min(bounds) if bounds else None

    @property
    def pace(self) -> float:
        """URLs that the crawl gives out a day, lately."""
        share = -expm1(-(self._get("at") - self._get("since")) / PACE_S)
        return self._get("pace") / max(share, 1.0 / 24)

    @property
    def rooms(self) -> tuple[Room, ...]:
        """What bounds the fetches of a day: the budget, and the crawlers, if they get all that they ask for."""
        rooms = [Room(inf, "")]
        if self.per_day is not None:
            rooms.append(Room(self.per_day, "its budget for fetching again has"))
        long_enough = self._get("at") - self._get("since") >= ENOUGH_S
        if long_enough and self._get("pace") >= FULL * self._get("asked") > 0:
            rooms.append(Room(self.pace, "crawlers take"))
        return tuple(rooms)

    @property
    def renewed(self) -> int:
        return int(self._get("renewed"))

    @renewed.setter
    def renewed(self, row: int) -> None:
        self._set(renewed=row)

    @property
    def now(self) -> float:
        price, worth = self._get("price"), self._get("worth")
        return price if self.per_day is not None else max(price, worth)

    def allowed(self, at: float, wanted: int) -> int:
        """How many pages may be brought for an ask; the budget grows with time."""
        before, per_day = self._get("at"), self.per_day
        if before == 0.0:
            self._set(at=at, since=at, tokens=1.0)
            return wanted if per_day is None else 1
        passed = max(at - before, 0.0)
        kept = exp(-passed / PACE_S)
        self._set(at=max(at, before), pace=self._get("pace") * kept, asked=self._get("asked") * kept)
        if per_day is None:
            return wanted
        most = max(per_day * (SAVED_S + passed) / DAY_S, 1.0)
        tokens = self._get("tokens") + per_day * passed / DAY_S
        self._set(tokens=min(tokens, most))
        return int(min(tokens, most))

    def brought(self, count: int, marginal: float) -> None:
        """So many pages were brought, the least of them worth `marginal`; infinite where the budget bounded nothing."""
        self._set(tokens=self._get("tokens") - count)
        price = self._get("price")
        if count and 0.0 < marginal < np.inf:
            share = min(QUICKNESS * count / (self.per_day or max(self.pace, 1.0)), 0.5) if price > 0.0 else 1.0
            self._set(price=price ** (1.0 - share) * marginal**share)
        elif self.per_day is None and price > 0.0:
            self._set(price=RELAXED * price)

    def answered(self, worth: F64, count: int, wanted: int) -> None:
        """What an answer holds besides pages that are fetched again, of so many wanted; `count` URLs in all."""
        others = max(wanted - (count - len(worth)), 1)
        share = exp(-others / PLACES)
        mean = float(np.sum(worth)) / others
        pace, asked = self._get("pace") + count, self._get("asked") + wanted
        self._set(worth=share * self._get("worth") + (1.0 - share) * mean, pace=pace, asked=asked)

    # hosts

    def of_hosts(self, hosts: U64) -> F64:
        """How many times the price each host's pages must be worth."""
        slots = self._hosts.find(hosts)
        return (
            np.where(slots < 0, 1.0, np.exp(self._hosts.rows["level"][slots]))
            if self._hosts.sheet.used
            else np.ones(len(hosts))
        )

    def waits(self, hosts: U64, change: int) -> None:
        """One more page of each of these hosts waits to be fetched again; with −1 one was fetched."""
        keys, counts = np.unique(hosts, return_counts=True)
        slots = self._hosts.claim(keys)
        rows = self._hosts.rows
        rows["waiting"][slots] = waiting = np.maximum(rows["waiting"][slots] + change * counts, 0)
        step = counts * np.where((waiting > BEHIND) & (change > 0), DEARER, -CHEAPER)
        rows["level"][slots] = np.clip(rows["level"][slots] + step, 0.0, np.log(DEAREST))
