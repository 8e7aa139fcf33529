"""Watches one run: what was known when, what was given out, and what the guide thought of the pages it let wait.

It knows which pages are relevant, so nothing of it may reach the guide: it looks, and changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from crawlguide.core.errors import NotFound, UrlError
from crawlguide.core.urls import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from crawlguide.core.messages import Assigned
    from crawlguide.lab.pages import Page

LOOKS = (
    5  # at new relevant pages before each ask, and as many at the best of those seen before: each costs milliseconds
)


class Look(NamedTuple):
    """What the guide thought of a waiting URL; `rank` 1 would be the next."""

    p: float
    score: float
    rank: int | None


class Better(NamedTuple):
    """What was known and waiting when a request was made: so many relevant pages, and the one thought best of."""

    waiting: int
    url: str | None
    look: Look | None


class Request(NamedTuple):
    """A URL as it was assigned. `better` is common to a whole answer: what still waited after it."""

    url: str
    p: float
    exploration: float  # what was added to the score because little is known
    relevance: float
    better: Better


class Watch:
    """Give it to `run`; afterwards its columns say what happened."""

    def __init__(self, relevant: Iterable[str], seeds: Iterable[str]) -> None:
        self.relevant = frozenset(relevant)
        self.seeds = frozenset(canonical(seed) for seed in seeds)
        self.known = dict.fromkeys(self.seeds, 0)  # requests given out when a URL became known
        self.finder: dict[str, str] = {}  # the page that led to a URL first
        self.requests: list[Request] = []  # in the order in which they were made
        self.statuses: list[int] = []
        self.first_looks: dict[str, Look] = {}
        self._last_looks: dict[str, Look] = {}
        self._waiting = dict.fromkeys(url for url in self.seeds if url in self.relevant)  # the oldest first

    def look(self, explain: Callable[[str], dict[str, Any]]) -> None:
        """Before an ask: see what the guide thinks of some relevant pages that wait."""
        new = [url for url in self._waiting if url not in self._last_looks][:LOOKS]
        best = sorted(self._waiting.keys() & self._last_looks.keys(), key=self._standing)[:LOOKS]
        for url in [*new, *best]:
            try:
                told = explain(url)
            except NotFound:
                continue  # the guide took it for no link worth keeping
            self._last_looks[url] = Look(told["p"], told["score"], told["rank"])
            self.first_looks.setdefault(url, self._last_looks[url])

    def assigned(self, answer: Sequence[Assigned]) -> None:
        for one in answer:
            self._waiting.pop(one.url, None)
        best = min(self._waiting.keys() & self._last_looks.keys(), key=self._standing, default=None)
        better = Better(
            len(self._waiting),
            best or next(iter(self._waiting), None),
            self._last_looks[best] if best else None,
        )
        self.requests += [Request(one.url, one.p, one.terms.exploration, one.terms.relevance, better) for one in answer]

    def fetched(self, url: str, page: Page) -> None:
        self.statuses.append(page.status)
        targets = [link.url for link in page.links] + ([page.redirected_to] if page.redirected_to else [])
        for target in targets:
            try:
                found = canonical(target, url)
            except UrlError:
                continue  # nobody can fetch it
            if found not in self.known:
                self.known[found], self.finder[found] = len(self.requests), url
                if found in self.relevant:
                    self._waiting[found] = None

    def _standing(self, url: str) -> tuple[float, str]:
        """The best comes first."""
        return -self._last_looks[url].score, url
