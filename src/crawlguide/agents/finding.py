"""Find pages about a topic: the built-in crawler at work for one call, bounded in pages, time and what it says.

The crawl is one of the guide's, so that all it learns stays there, and another call may go on with it.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING

import msgspec
from anyio import CancelScope

from crawlguide.agents.messages import LONGEST_URL, MOST_RESULTS, FoundPage, FoundPages
from crawlguide.agents.texts import NOTICE, plain, snippet
from crawlguide.core.bounded import Bounded
from crawlguide.core.definition import Definition, Goal
from crawlguide.core.errors import (
    ConfigError,
    Conflict,
    Draining,
    MalformedRequest,
    NotFound,
    UnavailableError,
)
from crawlguide.crawler import options as crawl_options
from crawlguide.crawler import seeds as seeding
from crawlguide.crawler.estimate import RELEVANT
from crawlguide.crawler.fetch import FetchOptions
from crawlguide.crawler.lines import trouble_of
from crawlguide.crawler.loop import CrawlLoop, fetchers
from crawlguide.crawler.tally import Tally
from crawlguide.features.relevance.words import topic_words
from crawlguide.gateway.client.assignments import Assignments
from crawlguide.gateway.dashboard.formatting import reason

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from crawlguide.agents.calls import Call
    from crawlguide.agents.messages import FindPages
    from crawlguide.core.messages import Fetch
    from crawlguide.crawler.fetch import Fetcher
    from crawlguide.crawler.fetched import Fetched
    from crawlguide.crawler.lines import PageLine
    from crawlguide.gateway.client.verbs import AsyncVerbs

CONCURRENCY, AHEAD = 8, 2  # requests of one search at once; URLs held besides
MOST_AT_ONCE, MOST_OF_TENANT, MOST_OF_ONE = 16, 8, 4  # searches, those of one tenant, and those of one caller
MOST_REMEMBERED = 200  # searches whose pages are still known
FEWEST_RESULTS = 3
TITLE, SNIPPET, PROBLEM = 200, 300, 200  # characters
MOST_PROBLEMS = 5
CLOSES_WITHIN_S, ENDS_WITHIN_S = 3.0, 10.0
TOLD_EVERY_S = 0.5
PATIENCE_S = 3.0  # with starting points of which none can be reached: the guide would have them tried again later
ENDS = {
    "exhausted": "nothing is left to fetch from these starting points",
    "finished": "the crawl has reached a limit of its definition",
    "max-pages": "max_pages were requested",
    "max-time": "max_seconds are over",
    "unreachable": "no starting point can be reached",
    "stopping": "the server is being stopped",
}


@dataclass(frozen=True)
class SearchOptions:
    """What the operator says about requests of our own."""

    fetching: FetchOptions = field(default_factory=lambda: FetchOptions(concurrency=CONCURRENCY))
    delay_s: float | None = None


@dataclass
class Findings:
    """The pages of one search: those that wait for the guide's word, and the best of the others."""

    words: tuple[str, ...]
    tally: Tally = field(default_factory=Tally)
    best: list[FoundPage] = field(default_factory=list)
    problems: Counter[str] = field(default_factory=Counter)
    _waiting: dict[int, tuple[PageLine, str]] = field(default_factory=dict)
    _number: int = 0

    def add(self, line: PageLine, fetched: Fetched, report: Fetch) -> int:
        self._number += 1
        text = "" if fetched.error else report.text or ""
        self._waiting[self._number] = line, text
        return self._number

    def answered(self, number: int, relevance: float | None) -> None:
        line, text = self._waiting.pop(number)
        line.relevance = relevance
        self.tally.add(line)
        trouble = trouble_of(line)
        if problem := trouble or line.problem:
            self.problems[plain(problem, PROBLEM)] += 1
        if not trouble and relevance is not None and len(line.url) <= LONGEST_URL and self._is_wanted(relevance):
            self.best.append(self._page(line, relevance, text))
            self.best.sort(key=lambda page: -page.relevance)
            del self.best[MOST_RESULTS:]

    def _is_wanted(self, relevance: float) -> bool:
        return len(self.best) < MOST_RESULTS or relevance > self.best[-1].relevance

    def _page(self, line: PageLine, relevance: float, text: str) -> FoundPage:
        why = f"chosen for {reason(line.reason or '')}, with a chance of {line.p or 0.0:.2f} of being relevant"
        title, part = plain(line.title or "", TITLE), snippet(text, self.words, SNIPPET)
        return FoundPage(line.url, title, round(relevance, 3), part, why)

    def shown(self, most: int) -> list[FoundPage]:
        """Those that fit; a few of the best where none does."""
        good = sum(page.relevance >= RELEVANT for page in self.best)
        return self.best[: min(most, max(good, FEWEST_RESULTS))]

    def troubles(self) -> list[str]:
        return [
            f"{'once' if count == 1 else f'{count} times'}: {words}"
            for words, count in self.problems.most_common(MOST_PROBLEMS)
        ]


class Searches:
    """All searches of a server: how many at once, and what the latest have found."""

    def __init__(self, options: SearchOptions) -> None:
        self.options = options
        self._running: list[tuple[str, Search]] = []
        self._remembered: Bounded[tuple[str, str], Findings] = Bounded(MOST_REMEMBERED)
        self._stopped = False

    async def find(self, call: Call, wanted: FindPages) -> FoundPages:
        """Crawl until a bound is reached, or until nobody wants the answer: then what is held goes back first."""
        search = Search(self.options, call, wanted)
        with self._counted(call.whose, search):
            work, gone = search.begin(), asyncio.create_task(call.gone.wait())
            try:
                await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                gone.cancel()
                with CancelScope(shield=True):
                    await search.end()
                self._remembered[call.whose, search.crawl_id] = search.findings
        if work.cancelled():
            raise UnavailableError("the search was stopped before it had begun", retry_after_s=5.0)
        return work.result()

    def found(self, whose: str, crawl_id: str) -> Findings | None:
        """What the latest search in a crawl has found for somebody."""
        return self._remembered.get((whose, crawl_id))

    def stop(self) -> None:
        """End all, with what they have; begin no other."""
        self._stopped = True
        for _, search in self._running:
            search.stop("stopping")

    @contextmanager
    def _counted(self, whose: str, search: Search) -> Iterator[None]:
        if self._stopped:
            raise Draining("the server is shutting down", retry_after_s=5.0)
        own = sum(one == whose for one, _ in self._running)
        if own >= MOST_OF_ONE or self._of_tenant(whose) >= MOST_OF_TENANT or len(self._running) >= MOST_AT_ONCE:
            words = f"{own} searches of yours and {len(self._running)} in all are running; wait until one has ended"
            raise UnavailableError(words, retry_after_s=10.0)
        entry = whose, search
        self._running.append(entry)
        try:
            yield
        finally:
            self._running.remove(entry)

    def _of_tenant(self, whose: str) -> int:
        """Searches of the same tenant, which may have many credentials; 0 where nobody shows any."""
        tenant, named, _ = whose.partition("/")
        return sum(one.startswith(f"{tenant}/") for one, _ in self._running) if named else 0


class Search:
    """One search, from its crawl in the guide to its answer."""

    def __init__(self, options: SearchOptions, call: Call, wanted: FindPages) -> None:
        self._options, self._call, self._wanted = options, call, wanted
        self._goal = Goal(topic=wanted.topic, keywords=tuple(wanted.keywords))
        self._began = time.monotonic()
        self._loop: CrawlLoop | None = None
        self._work: asyncio.Task[FoundPages] | None = None
        self.crawl_id = wanted.crawl_id or _name(wanted.topic)
        self.findings = Findings(topic_words(self._goal))

    def begin(self) -> asyncio.Task[FoundPages]:
        """In a task of its own: who is cancelled while waiting for it decides when it ends."""
        self._work = asyncio.create_task(self.run())
        return self._work

    def stop(self, why: str) -> None:
        """Fetch nothing more."""
        if self._loop is not None:
            self._loop.stop(why, at_once=True)
        elif self._work is not None:
            self._work.cancel()

    async def end(self) -> None:
        """Wait until it has given back what it holds, if it is still at work."""
        if self._work is not None and not self._work.done():
            self.stop("cancelled")
            await asyncio.wait({self._work}, timeout=ENDS_WITHIN_S)
            self._work.cancel()

    async def run(self) -> FoundPages:
        """Ask the guide before anything is fetched: whoever may not do this there sends us nowhere."""
        wanted, crawler_id = self._wanted, f"find-{token_hex(6)}"
        guide = self._call.guide
        _check_start(wanted.start)
        await self._call.progress(0, wanted.max_pages, f"crawl {self.crawl_id!r}: looking at the starting points")
        agent = await self._define(guide)
        await guide.release(self.crawl_id, crawler_id)
        async with AsyncExitStack() as stack:
            both = await stack.enter_async_context(fetchers(self._options.fetching))
            # Seeded before anything is asked: a crawl without seeds would be said to be over.
            await guide.seed(self.crawl_id, await self._seeds(both.files))
            assignments = await stack.enter_async_context(
                Assignments(guide, self.crawl_id, crawler_id, concurrency=CONCURRENCY, ahead=AHEAD)
            )
            findings = self.findings
            self._loop = CrawlLoop(assignments, both, findings, findings.tally, agent=agent, max_pages=wanted.max_pages)
            async with self._watched(self._loop):
                why = await self._loop.run()
            await assignments.close(CLOSES_WITHIN_S)
            return self._answer(why, assignments.trouble)

    async def _define(self, guide: AsyncVerbs) -> str:
        """A new crawl, or the one that goes on; returns the name by which its robots.txt files are read."""
        try:
            known = await guide.crawl(self.crawl_id) if self._wanted.crawl_id else None
        except NotFound:
            known = None
        if known is None:
            wanted = self._definition()
            await guide.define(self.crawl_id, wanted)
            return wanted.policy.user_agent
        topic = known["definition"].get("goal", {}).get("topic", "")
        if topic != self._wanted.topic:
            words = f"crawl_id: {self.crawl_id!r} is about {topic[:100]!r}, got the topic {self._wanted.topic[:100]!r}"
            raise Conflict(f"{words}; leave crawl_id out to begin another one", field="crawl_id")
        return str(known["definition"]["policy"]["user_agent"])

    def _definition(self) -> Definition:
        policy = {
            "seed_hosts_only": self._wanted.same_site,
            "user_agent": crawl_options.token(self._options.fetching.user_agent),
        }
        if self._options.delay_s is not None:
            policy["default_delay_s"] = self._options.delay_s
        said = {"goal": msgspec.to_builtins(self._goal), "policy": policy}
        return msgspec.convert(crawl_options.completed(said), Definition)

    async def _seeds(self, fetcher: Fetcher) -> list[str]:
        """Looking at hosts takes some of the time."""
        pause_s = seeding.PAUSE_S if self._options.delay_s is None else self._options.delay_s
        agent, goal = self._options.fetching.user_agent, msgspec.to_builtins(self._goal)
        try:
            async with asyncio.timeout(self._left_s):
                return await seeding.found(self._wanted.start, goal, fetcher, agent, lambda _: None, pause_s)
        except TimeoutError:
            words = f"start: the hosts were not looked through within {self._wanted.max_seconds} s"
            raise UnavailableError(f"{words}; give URLs of pages, or more max_seconds") from None

    @property
    def _left_s(self) -> float:
        return max(0.01, self._began + self._wanted.max_seconds - time.monotonic())

    @asynccontextmanager
    async def _watched(self, loop: CrawlLoop) -> AsyncIterator[None]:
        """Stop it when its time is over; say how it goes. Who does not listen to that delays nothing."""
        timer = asyncio.get_running_loop().call_later(self._left_s, lambda: loop.stop("max-time", at_once=True))
        telling = asyncio.create_task(self._tell(loop))
        try:
            yield
        finally:
            timer.cancel()
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

    async def _tell(self, loop: CrawlLoop) -> None:
        tally, reported, idle_s = self.findings.tally, 0, 0.0
        while True:
            await asyncio.sleep(TOLD_EVERY_S)
            idle_s = 0.0 if loop.under_way or tally.requests else idle_s + TOLD_EVERY_S
            if self.findings.problems and idle_s >= PATIENCE_S:
                loop.stop("unreachable")
            if tally.requests > reported:  # it may only rise
                reported = tally.requests
                words = f"{reported} pages fetched, {tally.relevant} of them relevant"
                await self._call.progress(reported, self._wanted.max_pages, words)

    def _answer(self, why: str, trouble: str) -> FoundPages:
        tally, shown = self.findings.tally, self.findings.shown(self._wanted.max_results)
        problems = self.findings.troubles() + ([plain(f"the guide: {trouble}", PROBLEM)] if trouble else [])
        return FoundPages(
            crawl_id=self.crawl_id,
            ended=ENDS.get(why, why),
            fetched=tally.requests,
            relevant=tally.relevant,
            seconds=round(time.monotonic() - self._began, 1),
            pages=shown,
            problems=problems,
            notice=NOTICE,
            next=_advice(why, self.crawl_id, tally, len(shown)),
        )


def _advice(why: str, crawl_id: str, tally: Tally, shown: int) -> str:
    """What to do next, for whoever has read the answer."""
    if not tally.pages:
        return "No page could be fetched: see problems, and begin elsewhere."
    on = f"call find_pages again with crawl_id {crawl_id!r} and the same topic and start to go on"
    if tally.relevant > shown:
        return f"{tally.relevant - shown} more relevant pages were found: ask for more max_results; {on}."
    if why == "exhausted":
        return "All that can be reached was fetched: begin elsewhere, or leave same_site out."
    if not tally.relevant:
        return f"Nothing relevant yet: begin nearer to the topic, give keywords, or {on}."
    return f"Read the pages you need; {on}."


def _check_start(start: list[str]) -> None:
    """What is no URL and no host is said before anything is done."""
    for number, text in enumerate(start):
        try:
            seeding.checked(text)
        except ConfigError as wrong:
            where = f"start[{number}]"
            raise MalformedRequest(f"{where}: {wrong.message.removeprefix('SEED: ')}", field=where) from None


def _name(topic: str) -> str:
    words = "-".join(re.findall(r"[a-z0-9]+", topic.lower()))[:40].strip("-")
    return f"find-{words or 'pages'}-{token_hex(3)}"
