"""An assigned URL on its way through Scrapy, from its lease to the report of what became of it."""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Any, Protocol

from crawlguide.core.messages import MAX_OUTLINKS, Fetch, Outlink
from crawlguide.core.outcomes import is_retryable

if TYPE_CHECKING:
    from scrapy import Request

    from crawlguide.gateway.client.assignments import Assignment
    from crawlguide.integrations.scrapy.reading import Anchor


class Frontier(Protocol):
    """Where a visit comes from and goes back to: the scheduler."""

    def follow(self, visit: Visit, request: Request, url: str, anchor: Anchor | None) -> None: ...

    def report(self, visit: Visit, fetch: Fetch) -> None: ...


class Visit:
    """`response.meta["crawlguide"]` in a callback: why the URL was chosen, and how good it was.

    A spider that knows better than words do says `relevance` (0 to 1), or `reward`, before its callback ends.
    """

    def __init__(self, assignment: Assignment, frontier: Frontier) -> None:
        self.assignment, self._frontier = assignment, frontier
        self.is_scheduled = self.is_started = self.is_told = False
        self.facts: dict[str, Any] = {}
        self.outlinks: list[Outlink] = []
        self._request: weakref.ref[Request] | None = None
        self._relevance: float | None = None
        self._reward: float | None = None

    # for spiders

    @property
    def score(self) -> float:
        return self.assignment.score

    @property
    def p(self) -> float:
        """The guide's estimate that the page is relevant."""
        return self.assignment.p

    @property
    def reason(self) -> str:
        return self.assignment.reason

    @property
    def relevance(self) -> float | None:
        return self._relevance

    @relevance.setter
    def relevance(self, value: float) -> None:
        self._relevance = _number(value, "relevance", 0.0, 1.0)

    @property
    def reward(self) -> float | None:
        return self._reward

    @reward.setter
    def reward(self, value: float) -> None:
        self._reward = _number(value, "reward", -1e6, 1e6)

    # for the scheduler and the middlewares

    def __deepcopy__(self, _: object) -> Visit:
        """A spider may copy its `meta` as deeply as it likes: there is one visit."""
        return self

    def carried_by(self, request: Request) -> None:
        """The request in Scrapy's hands. Where it is dropped and nobody is told, the visit ends with it."""
        loop = asyncio.get_running_loop()

        def dropped(_: object) -> None:
            if not self.is_told and not loop.is_closed():
                loop.call_soon_threadsafe(self.conclude)

        self._request = weakref.ref(request, dropped)

    def is_carried_by(self, request: Request) -> bool:
        return self._request is not None and self._request() is request

    def follow(self, request: Request, url: str, anchor: Anchor | None) -> None:
        """A callback yielded this; `url` is its canonical address."""
        self._frontier.follow(self, request, url, anchor)

    def note(self, **facts: Any) -> None:
        self.facts |= facts

    def link(self, outlink: Outlink) -> None:
        if len(self.outlinks) < MAX_OUTLINKS:
            self.outlinks.append(outlink)

    @property
    def comes_again(self) -> bool:
        """The guide tries it again by itself."""
        return self.is_told and is_retryable(self.facts.get("status") or 0, self.facts.get("error") or "")

    def conclude(self, **facts: Any) -> None:
        """Report it, once. What was not started goes back."""
        if self.is_told:
            return
        self.is_told = True
        self.note(**facts)
        if not self.facts:
            self.note(error="other" if self.is_started else "released")
        self.note(relevance=self._relevance, reward=self._reward, outlinks=self.outlinks)
        self._frontier.report(self, Fetch(url=self.assignment.url, **self.facts))


def _number(value: Any, name: str, least: float, most: float) -> float:
    if isinstance(value, bool | int | float) and least <= value <= most:
        return float(value)
    raise ValueError(f"{name}: expected a number from {least:g} to {most:g}, got {value!r}")
