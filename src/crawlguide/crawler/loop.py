"""The crawl itself: take an assignment, fetch it, read it, keep it, tell the guide."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from crawlguide.core.errors import CrawlGuideError
from crawlguide.crawler import lines
from crawlguide.crawler.copies import UNCHANGED, Copies, unchanged
from crawlguide.crawler.fetch import Fetcher
from crawlguide.crawler.fetched import Validators
from crawlguide.crawler.lines import NOTHING, ROBOTS, ROBOTS_BYTES
from crawlguide.crawler.parse import is_read_here, parse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from crawlguide.core.messages import Fetch, ItemResult
    from crawlguide.crawler.fetch import FetchOptions
    from crawlguide.crawler.fetched import Fetched
    from crawlguide.crawler.lines import PageLine
    from crawlguide.crawler.parse import Page
    from crawlguide.crawler.tally import Tally
    from crawlguide.gateway.client.assignments import Assignment, Assignments

LARGE = 30_000  # bytes: what has more is read in a thread
ENDS_WITHIN_S = 5.0  # what is under way where somebody waits for the end
HURRIED = ("interrupted", "max-time")


@dataclass(frozen=True)
class Fetchers:
    """Who fetches what. A page's redirect is told to the guide, which knows scope, robots.txt, pace, and what is known;
    that of a robots.txt is followed, as RFC 9309 wants it."""

    pages: Fetcher
    files: Fetcher

    async def fetch(self, one: Assignment, validators: Validators | None) -> Fetched:
        if one.kind == ROBOTS:
            return await self.files.fetch(one.url, enough=ROBOTS_BYTES)
        return await self.pages.fetch(one.url, validators)


def told_by_guide(one: Assignment) -> Validators | None:
    """What the guide knows of a copy that another crawler, or an earlier run, fetched."""
    known = one.kind != ROBOTS and (one.if_none_match or one.if_modified_since)
    return Validators(one.if_none_match, one.if_modified_since) if known else None


@asynccontextmanager
async def fetchers(every: FetchOptions) -> AsyncIterator[Fetchers]:
    """Both, as long as the block runs."""
    async with Fetcher(replace(every, max_redirects=0)) as pages, Fetcher(every) as files:
        yield Fetchers(pages, files)


class KeepsPages(Protocol):
    """What becomes of what is fetched: files in a folder (`outputs.py`), or whatever whoever crawls makes of it."""

    def add(self, line: PageLine, fetched: Fetched, report: Fetch) -> int:
        """A request, before the guide is told of it; returns its number."""

    def answered(self, number: int, relevance: float | None) -> None:
        """The guide has it."""


class CrawlLoop:
    """Fetches as many at once as its assignments are for; `stop` ends it from outside.

    `agent` is the name by which robots.txt is read, for what pages and headers say to us alone.
    """

    def __init__(  # noqa: PLR0913 - all that takes part in a crawl
        self,
        assignments: Assignments,
        fetchers: Fetchers,
        outputs: KeepsPages,
        tally: Tally,
        *,
        agent: str,
        copies: Copies | None = None,
        max_pages: int = 0,
    ) -> None:
        self.assignments, self.tally = assignments, tally
        self._fetchers, self._outputs, self._copies = fetchers, outputs, copies or Copies(wanted=False)
        self._agent, self._max_pages = agent, max_pages
        self._slots = asyncio.Semaphore(assignments.concurrency)
        self._aside = asyncio.Lock()  # one process reads what may take long: who waits for it needs no thread
        self._under_way: set[asyncio.Task[None]] = set()
        self._requested = tally.earlier = tally.requests
        self._dispatching: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._hurried: asyncio.TimerHandle | None = None
        self.ended = ""  # why
        self.remaining = ""  # how much is still to be found, in words
        self.left_s: float | None = None  # until a limit is reached, at this pace
        self._one_more = asyncio.Event()  # that the guide has answered

    @property
    def under_way(self) -> int:
        return len(self._under_way)

    async def run(self) -> str:
        """Crawl until nothing is left, a limit is reached or somebody stops it; returns why it ended."""
        self._dispatching = asyncio.create_task(self._dispatch())
        self._dispatching.add_done_callback(self._note_failure)
        try:
            await asyncio.wait({self._dispatching})
        finally:
            self._dispatching.cancel()
            if not self.ended:  # cancelled
                self._hurry()
            await self._finish()
        if self._failure is not None:
            raise self._failure
        return self.ended

    async def grown_to(self, requests: float) -> None:
        """Wait until so many requests for pages were told and answered."""
        while self.tally.requests < requests:
            self._one_more.clear()
            await self._one_more.wait()

    def stop(self, why: str, *, at_once: bool = False) -> None:
        """Start nothing more; `at_once`: what is under way goes back, too."""
        self.ended = self.ended or why
        if self._dispatching is not None:
            self._dispatching.cancel()
        if at_once:
            self._give_back()
        elif why in HURRIED:
            self._hurry()

    def _hurry(self) -> None:
        self._hurried = self._hurried or asyncio.get_running_loop().call_later(ENDS_WITHIN_S, self._give_back)

    def _give_back(self) -> None:
        for task in self._under_way:
            task.cancel()

    async def _dispatch(self) -> None:
        while not self.ended:
            await self._slots.acquire()
            if self._max_pages and self._requested >= self._max_pages:
                self.ended = "max-pages"
                return
            one = await self.assignments.next()
            if one is None:
                self.ended = self.assignments.state
                return
            self._requested += one.kind != ROBOTS
            task = asyncio.create_task(self._visit(one))
            self._under_way.add(task)
            task.add_done_callback(self._visited)

    async def _finish(self) -> None:
        """What is under way comes to its end, for which a fetch has limits of its own, or goes back."""
        if self._under_way and self._failure is None:
            await asyncio.wait(self._under_way)
        self._give_back()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _visit(self, one: Assignment) -> None:
        copy = self._copies.of(one.url) if one.kind != ROBOTS else None
        fetched = await self._fetchers.fetch(one, copy.validators if copy else told_by_guide(one))
        page = NOTHING if one.kind == ROBOTS or fetched.redirects else await self._read(fetched)
        line = lines.line_of(one, fetched, page, lines.now())
        report = lines.report_of(one, line, fetched, page)
        line.revisited = copy is not None
        if copy is not None and line.status == UNCHANGED:
            report = unchanged(line, report, copy)
        number = self._outputs.add(line, fetched, report)
        self.assignments.report(report).add_done_callback(partial(self._answered, number))
        self.tally.tick()

    async def _read(self, fetched: Fetched) -> Page:
        """A page may not keep others waiting."""
        if fetched.error or not fetched.body:
            return NOTHING
        if not is_read_here(fetched):
            async with self._aside:
                return await asyncio.to_thread(parse, fetched, self._agent)
        if len(fetched.body) > LARGE:
            return await asyncio.to_thread(parse, fetched, self._agent)
        return parse(fetched, self._agent)

    def _visited(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._slots.release()
        self._note_failure(task)

    def _note_failure(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (problem := task.exception()) is not None:
            self.fail(problem)

    def _answered(self, number: int, answer: asyncio.Future[ItemResult]) -> None:
        if answer.cancelled() or answer.exception() is not None:
            return
        try:
            self._outputs.answered(number, answer.result().relevance)
        except (OSError, CrawlGuideError) as problem:
            self.fail(problem)
        self._one_more.set()

    def fail(self, problem: BaseException) -> None:
        """End with this problem."""
        self._failure = self._failure or problem
        self.stop("failed", at_once=True)
