"""A virtual clock: a policy visits pages within its budget, and learns nothing but what it sees there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64, I64, Mask, Rows
    from crawlguide.lab.freshness.histories import Histories

STEPS = 24  # of a day: what may be spent in an hour is spent at its end


@dataclass(frozen=True)
class Visits:
    """What pages showed: one bit each, and whether they are still there."""

    pages: Rows
    at: float
    gap: F64  # days since the visit before
    changed: Mask
    gone: Mask


@dataclass(frozen=True)
class Known:
    """What every policy may know beforehand."""

    urls: Sequence[str]
    importance: F64
    share: float  # of the pages that may be visited in a day
    seed: int

    def __len__(self) -> int:
        return len(self.importance)


class Policy(Protocol):
    def discover(self, pages: Rows, at: float) -> None:
        """Pages that were found and fetched for the first time; this costs nothing of the budget."""

    def choose(self, now: float, count: int) -> Rows:
        """At most so many pages to visit now, each once, only discovered ones."""

    def learn(self, visits: Visits) -> None: ...


@dataclass(frozen=True)
class Log:
    """All visits in the order of time, first fetches among them. `seen` is how many of its changes a page had had."""

    page: I64
    at: F64
    seen: I64
    is_first: Mask
    changed: Mask


class Clock:
    """Where a replay stands: what has happened up to now, and what each copy shows of it."""

    def __init__(self, histories: Histories) -> None:
        self._of_events, self._at = histories.events
        self._births = np.argsort(histories.born, kind="stable")
        self._born_at = histories.born[self._births]
        self._past = self._born = 0
        self.happened = np.zeros(len(histories), np.int64)
        self.seen = np.zeros(len(histories), np.int64)
        self.visited = np.full(len(histories), np.nan)
        self.last = np.where(
            np.isfinite(histories.gone), np.diff(histories.first), -1
        )  # the change after which it is gone
        self.here = 0  # pages that are known and not gone

    def advance(self, now: float) -> Rows:
        """Let happen what happens until now; returns the pages that became known."""
        until = int(np.searchsorted(self._at, now, "right"))
        happened = self._of_events[self._past : until]
        np.add.at(self.happened, happened, 1)
        self._past = until
        until = int(np.searchsorted(self._born_at, now, "right"))
        born = self._births[self._born : until]
        self._born = until
        self.here += len(born) - int((self.happened[happened] == self.last[happened]).sum())
        return born

    def first_fetch(self, pages: Rows, now: float) -> None:
        self.seen[pages], self.visited[pages] = self.happened[pages], now

    def visit(self, pages: Rows, now: float) -> Visits:
        changed = self.happened[pages] != self.seen[pages]
        gone = self.happened[pages] == self.last[pages]
        visits = Visits(pages, now, now - self.visited[pages], changed, gone)
        self.seen[pages], self.visited[pages] = self.happened[pages], now
        return visits


def replay(histories: Histories, policy: Policy, share: float, seed: int = 0) -> Log:
    """Run a policy over the whole time. It may visit so large a share of the pages that are there in a day."""
    rng = np.random.default_rng([seed, 1])
    clock, log = Clock(histories), []
    allowed = 0.0
    for step in range(histories.days * STEPS):
        now = step / STEPS
        born = clock.advance(now)
        if allowed >= 1.0:
            pages = policy.choose(now, int(allowed))
            allowed -= int(allowed)
            if len(pages):
                visits = clock.visit(pages, now)
                log.append(_entries(clock, pages, now, np.zeros(len(pages), bool), visits.changed))
                policy.learn(_mislabelled(visits, histories.mislabelled, rng))
        if len(born):
            clock.first_fetch(born, now)
            policy.discover(born, now)
            log.append(_entries(clock, born, now, np.ones(len(born), bool), np.zeros(len(born), bool)))
        allowed += share * clock.here / STEPS
    return Log(*(np.concatenate(column) for column in zip(*log, strict=True)))


def _entries(clock: Clock, pages: Rows, now: float, is_first: Mask, changed: Mask) -> tuple[I64, F64, I64, Mask, Mask]:
    return pages, np.full(len(pages), now), clock.seen[pages], is_first, changed


def _mislabelled(visits: Visits, share: float, rng: np.random.Generator) -> Visits:
    """Wrong bits; whether a page is gone is told by its status, and right."""
    if not share:
        return visits
    wrong = (rng.random(len(visits.pages)) < share) & ~visits.gone
    return Visits(visits.pages, visits.at, visits.gap, visits.changed ^ wrong, visits.gone)
