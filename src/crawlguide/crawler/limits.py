"""When a crawl ends before everything is fetched: its time is over, or what is left is not worth it."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, suppress
from math import isinf
from typing import TYPE_CHECKING, Any

from crawlguide.core.errors import CrawlGuideError
from crawlguide.crawler.estimate import FEWEST_HITS
from crawlguide.crawler.lines import ROBOTS
from crawlguide.gateway.dashboard.formatting import percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.crawler.estimate import Estimate
    from crawlguide.crawler.loop import CrawlLoop
    from crawlguide.crawler.options import CrawlOptions
    from crawlguide.crawler.tally import Tally
    from crawlguide.gateway.client.assignments import Assignment, Assignments

TICK_S = 0.5
GROWTH = 1.1  # times as many requests as when somebody looked last: a quick crawl makes hundreds in a tick
COUNTED_EVERY_S = 3.0  # the guide is asked how many URLs wait; where that may end the crawl, whenever somebody looks
SCAN_SHARE = 20  # the time of looking through all that waits is at most one part in so many
MOST_HELD = 10_000  # URLs at hand that are looked at
FEWEST_REQUESTS = 100  # before the harvest, or what remains, may end a crawl


class Limits:
    """Looked at now and then. How many URLs wait is known from the guide; time counts from when the crawl began."""

    def __init__(self, options: CrawlOptions, began: float) -> None:
        self._options, self._began = options, began
        self._every_s = COUNTED_EVERY_S if options.until is None and options.min_harvest is None else 0.0
        self._counted = float("-inf")
        self._numbers: dict[str, Any] = {}  # of the crawl, as the guide counted them last
        self._scans_at = float("-inf")  # no earlier are the URLs that wait looked through

    async def due(self, loop: CrawlLoop) -> None:
        """Wait until it is time to look: by the clock, or since so many requests were made that it may be over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(TICK_S):
                await loop.grown_to(max(FEWEST_REQUESTS, GROWTH * loop.tally.requests))

    async def look(self, loop: CrawlLoop) -> None:
        """Stop the crawl if it is time; else say how much is left."""
        passed_s = time.monotonic() - self._began
        if self._options.max_time_s and passed_s >= self._options.max_time_s:
            loop.stop("max-time")
        loop.left_s = min(self._left(loop, passed_s), default=None)
        if time.monotonic() - self._counted >= self._every_s:
            with suppress(CrawlGuideError, TimeoutError):
                await self._count(loop)
            self._counted = time.monotonic()
        loop.remaining = remaining(loop.tally, self._numbers)
        if time.monotonic() >= self._scans_at:
            with suppress(CrawlGuideError, TimeoutError):
                await self._end_without_rules(loop)

    async def _end_without_rules(self, loop: CrawlLoop) -> None:
        """A host whose robots.txt nobody can read would keep a crawl from ever coming to its end."""
        if not _waits_for_lost(loop):
            return
        began = time.monotonic()
        is_over = await _is_all_lost(loop)
        self._scans_at = began + max(COUNTED_EVERY_S, SCAN_SHARE * (time.monotonic() - began))
        if is_over and _waits_for_lost(loop):
            loop.stop("exhausted", at_once=True)

    async def _count(self, loop: CrawlLoop) -> None:
        assignments = loop.assignments
        self._numbers = (await assignments.guide.stats(assignments.crawl_id))["crawls"][assignments.crawl_id]
        if loop.tally.requests >= FEWEST_REQUESTS:
            self._judge(loop, _estimate(loop.tally, self._numbers))

    def _judge(self, loop: CrawlLoop, said: Estimate) -> None:
        until, least = self._options.until, self._options.min_harvest
        if until is not None and said.found >= FEWEST_HITS and said.share >= until:
            loop.stop("until")
        if least is not None and 1 / said.next_price < least:
            loop.stop("min-harvest")

    def _left(self, loop: CrawlLoop, passed_s: float) -> list[float]:
        options, pace = self._options, loop.tally.pace()
        left = [options.max_time_s - passed_s] if options.max_time_s else []
        if options.max_pages and pace:
            left.append((options.max_pages - loop.tally.requests) / pace)
        return [max(0.0, seconds) for seconds in left]


def _waits_for_lost(loop: CrawlLoop) -> bool:
    """Whether the guide has nothing to give but robots.txt files that could not be read again and again."""
    assignments, tally = loop.assignments, loop.tally
    if assignments.state != "waiting" or assignments.unreported or not tally.has_lost:
        return False
    return all(one.kind == ROBOTS and tally.is_lost(one.url) for one in _held(assignments))


async def _is_all_lost(loop: CrawlLoop) -> bool:
    """Whether all that waits in the crawl waits for such a file; what other crawlers are at may bring more."""
    guide, crawl_id = loop.assignments.guide, loop.assignments.crawl_id
    async with aclosing(guide.urls(crawl_id, "queued")) as waiting:
        async for one in waiting:
            if not loop.tally.is_lost(one["url"]):
                return False
    numbers = (await guide.stats(crawl_id))["crawls"][crawl_id]
    return bool(numbers["leased"] <= len(_held(loop.assignments)))


def _held(assignments: Assignments) -> list[Assignment]:
    return [*assignments.started.values(), *assignments.upcoming(MOST_HELD)]


def remaining(tally: Tally, numbers: Mapping[str, Any]) -> str:
    """How much is still to be found, in words; empty where nobody can say."""
    return words(_estimate(tally, numbers)) if tally.judged and numbers else ""


def _estimate(tally: Tally, numbers: Mapping[str, Any]) -> Estimate:
    return tally.estimator.estimate(numbers["queued"] + numbers["leased"])


def words(said: Estimate) -> str:
    """About 120 relevant pages remain, likely between 40 and 300; 83 % are found, the next one costs 4 requests."""
    if said.found < FEWEST_HITS:
        return "too little was found to tell what remains"
    if isinf(said.next_price):
        return "nothing waits any more: all relevant pages that could be reached are found"
    likely = f"likely between {said.low:,.0f} and {said.high:,.0f}"
    about = f"about {said.remaining:,.0f} relevant pages remain, {likely}"
    return f"{about}; {percent(said.share)} are found, the next one costs {said.next_price:,.1f} requests"
