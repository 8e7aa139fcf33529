"""What a crawl has come to so far: counted from the lines of `pages.jsonl`, live or read again."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from crawlguide.core.outcomes import is_failure, is_success
from crawlguide.core.urls import queue
from crawlguide.crawler.estimate import RELEVANT, Estimator
from crawlguide.crawler.lines import ROBOTS, trouble_of
from crawlguide.policy.robots.cache import origin_of

if TYPE_CHECKING:
    from crawlguide.crawler.lines import PageLine

MOST_HOSTS = 100_000  # are told apart; the rest is counted as one
MOST_POINTS = 1_000  # of the curve; then every second one goes
RECENT = 200  # pages of which the present harvest is known
PACE_S = 10.0  # over so long pages per second are counted
BEST = 20  # pages that are named in the end
OTHERS = "(other hosts)"
MOST_REASONS = 100  # why documents could not be read
OTHER_REASONS = "(for other reasons)"
ROBOTS_TRIES = 3  # in a row, until a crawl no longer waits for a robots.txt
BLOCKED = "blocked"  # our own rules forbid going there: another try comes to the same


@dataclass
class Curve:
    """Relevant pages against pages, in few points however long the crawl is."""

    points: list[tuple[int, float]] = field(default_factory=lambda: [(0, 0)])
    every: int = 1

    def add(self, pages: int, relevant: float) -> None:
        if pages % self.every:
            return
        self.points.append((pages, relevant))
        if len(self.points) > MOST_POINTS:
            self.points, self.every = self.points[::2], 2 * self.every


@dataclass
class HostCount:
    pages: int = 0
    relevant: int = 0
    failed: int = 0


class Unread(NamedTuple):
    """A robots.txt that could not be read: why, and how often in a row."""

    problem: str
    tries: int

    @property
    def is_lost(self) -> bool:
        return self.tries >= ROBOTS_TRIES


@dataclass
class Tally:
    """Pages are requests for pages that were answered with one; requests for robots.txt are counted apart."""

    requests: int = 0  # for pages: what `--max-pages` counts
    robots: int = 0
    pages: int = 0  # that came
    relevant: int = 0
    judged: int = 0
    redirects: int = 0
    revisits: int = 0  # of pages that came before; whether they are relevant was counted then
    bytes: int = 0
    earlier: int = 0  # of the requests, those of runs before this one
    problems: Counter[str] = field(default_factory=Counter)
    unreadable: Counter[str] = field(default_factory=Counter)  # documents that came, by why they could not be read
    unread: dict[str, Unread] = field(default_factory=dict)  # by origin, as of the last try
    hosts: dict[str, HostCount] = field(default_factory=dict)
    curve: Curve = field(default_factory=Curve)
    estimator: Estimator = field(default_factory=Estimator)
    recent: deque[bool] = field(default_factory=lambda: deque(maxlen=RECENT))
    best: list[PageLine] = field(default_factory=list)  # the most relevant pages, in no order
    _times: deque[float] = field(default_factory=deque)

    def add(self, line: PageLine) -> None:
        self.bytes += line.bytes
        if line.kind == ROBOTS:
            self.robots += 1
            self._note_robots(line)
            return
        self.requests += 1
        if line.revisited:
            self.revisits += 1
            return
        good = line.relevance is not None and line.relevance >= RELEVANT
        self._count_host(line, good)
        if is_failure(line.status or 0, line.error or ""):
            self.problems[line.error or f"status {line.status}"] += 1
        elif line.redirected_to:
            self.redirects += 1
        elif is_success(line.status or 0):
            self.pages += 1
            self._note_unreadable(line.problem)
        self.relevant += good
        self.judged += line.relevance is not None
        self.estimator.fetched(line.p or 0.0, line.relevance or 0.0)
        self.recent.append(good)
        self.curve.add(self.requests, self.relevant)
        if good:
            self._note_best(line)

    def _note_robots(self, line: PageLine) -> None:
        """Without it nothing of the host may be fetched, and it is tried again ever later."""
        origin = origin_of(line.url)
        before = self.unread.pop(origin, None)
        if (trouble := trouble_of(line)) and len(self.unread) < MOST_HOSTS:
            tries = ROBOTS_TRIES if line.error == BLOCKED else before.tries + 1 if before else 1
            self.unread[origin] = Unread(trouble, tries)

    @property
    def has_lost(self) -> bool:
        """Whether a robots.txt could not be read so often that nobody waits for it any more."""
        return any(one.is_lost for one in self.unread.values())

    def is_lost(self, url: str) -> bool:
        """Whether the robots.txt of a URL is such a one."""
        found = self.unread.get(origin_of(url))
        return found is not None and found.is_lost

    def _note_unreadable(self, problem: str | None) -> None:
        """Some problems are in words of the document: so many are told apart."""
        if problem is not None:
            is_told_apart = problem in self.unreadable or len(self.unreadable) < MOST_REASONS
            self.unreadable[problem if is_told_apart else OTHER_REASONS] += 1

    def _note_best(self, line: PageLine) -> None:
        self.best.append(line)
        if len(self.best) >= 2 * BEST:
            self.best = self.best_pages()

    def best_pages(self) -> list[PageLine]:
        """The most relevant first."""
        return sorted(self.best, key=lambda line: -(line.relevance or 0.0))[:BEST]

    def _count_host(self, line: PageLine, good: bool) -> None:
        name = queue(line.url)
        if name not in self.hosts and len(self.hosts) >= MOST_HOSTS:
            name = OTHERS
        host = self.hosts.setdefault(name, HostCount())
        host.pages += 1
        host.relevant += good
        host.failed += is_failure(line.status or 0, line.error or "")

    def tick(self) -> None:
        """One more request, now."""
        now = time.monotonic()
        self._times.append(now)
        self._forget(now)

    def pace(self) -> float:
        """Requests a second, lately."""
        now = time.monotonic()
        self._forget(now)
        if len(self._times) < 2:
            return 0.0
        return (len(self._times) - 1) / max(now - self._times[0], 1e-6)

    def _forget(self, now: float) -> None:
        while self._times and self._times[0] < now - PACE_S:
            self._times.popleft()

    @property
    def without_rules(self) -> str:
        """Which hosts wait because nobody can read what may be fetched there, in words."""
        if not self.unread:
            return ""
        origin, unread = next(iter(self.unread.items()))
        more = len(self.unread) - 1
        others = f" (and of {more:,} more {'host' if more == 1 else 'hosts'})" if more else ""
        return f"robots.txt of {_host(origin)}{others} cannot be read and is tried again: {unread.problem}"

    def lost_hosts(self) -> dict[str, str]:
        """Hosts that nobody waits for any more, and why their robots.txt could not be read."""
        return {_host(origin): unread.problem for origin, unread in self.unread.items() if unread.is_lost}

    @property
    def harvest(self) -> float:
        """Relevant pages for each request."""
        return self.relevant / self.requests if self.requests else 0.0

    @property
    def recent_harvest(self) -> float:
        return sum(self.recent) / len(self.recent) if self.recent else 0.0

    def best_hosts(self, most: int) -> list[tuple[str, HostCount]]:
        named = [(name, host) for name, host in self.hosts.items() if host.relevant]
        return sorted(named, key=lambda pair: (-pair[1].relevant, pair[0]))[:most]


def _host(origin: str) -> str:
    return origin.partition("://")[2]
