"""A crawler over a small made-up web that repeats, with the same ids, whatever failed, and remembers every ack."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crawlguide.core.config import Config, CrawlsOptions
from crawlguide.core.definition import Definition, Policy
from crawlguide.core.errors import CrawlGuideError
from crawlguide.core.messages import VERSION, AskMessage, BudgetMessage, Fetch, Outlink, ReportMessage, SeedsMessage
from crawlguide.core.types import Crawl
from crawlguide.guide.local import LocalGuide
from tests import tally

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from crawlguide.core.clock import ManualClock
    from crawlguide.core.messages import Ack
    from crawlguide.core.protocols import Store

MAIN, SPARE = Crawl("default", "main"), Crawl("default", "spare")
PAGES = 24
WEB = [f"https://h{page % 3}.org/{page}" for page in range(PAGES + 1)]  # to the last one nothing leads at first
DEFINITION = Definition(policy=Policy(default_delay_s=0.0, horizon_s=5.0, traps=False), strategy={"kind": tally.PLUG})
CONFIG = Config(crawls=CrawlsOptions(plugins=(tally.PLUG,)))
TRIES = 12


def links_of(page: int) -> list[str]:
    """Every page leads to two or three others, and back to the first."""
    return [WEB[target] for target in (2 * page + 1, 2 * page + 2, 3 * page + 5) if target < PAGES] + WEB[:1]


async def nothing() -> None:
    """Nobody looks."""


@dataclass
class Crawler:
    """`after_failure` is awaited after every call that failed, before it is repeated."""

    store: Store
    clock: ManualClock
    after_failure: Callable[[], Awaitable[None]] = nothing
    acked: set[str] = field(default_factory=set)
    failures: list[CrawlGuideError] = field(default_factory=list)
    given: list[list[str]] = field(default_factory=list)  # by each ask
    calls: int = 0
    definition: Definition = DEFINITION

    def __post_init__(self) -> None:
        self.guide = LocalGuide(self.store, CONFIG, self.clock)

    def go_on_with(self, store: Store) -> None:
        self.store, self.guide = store, LocalGuide(store, CONFIG, self.clock)

    async def insist(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Anything but an error of our own ends the test."""
        for _ in range(TRIES):
            try:
                return await call()
            except CrawlGuideError as problem:
                self.failures.append(problem)
                await self.after_failure()
        raise AssertionError(f"{TRIES} tries and no success: {self.failures[-1]!r}")

    async def begin(self) -> None:
        await self.insist(lambda: self.guide.define(MAIN, self.definition))
        await self.insist(lambda: self.guide.seed(MAIN, SeedsMessage([*WEB[:2]])))

    async def step(self, urls: int = 2) -> int:
        """One ask and one tell; returns how many URLs there were to fetch."""
        self.calls += 1
        number, budget = self.calls, BudgetMessage(urls)
        ask = AskMessage(VERSION, "c-1", budget, request_id=f"ask-{number}", crawl_id=MAIN.name)
        advice = await self.insist(lambda: self.guide.ask(ask))
        found = [given.url for given in advice.assigned_urls]
        if found:
            report = ReportMessage(VERSION, "c-1", [fetched(url) for url in found], MAIN.name, f"tell-{number}")
            self.note(await self.insist(lambda: self.guide.tell(report)))
        self.clock.advance(1.0)
        self.given.append(found)
        return len(found)

    async def correct(self) -> None:
        """Pages that were fetched before are seen again, one with a new link, one only judged anew."""
        links = [Outlink(target) for target in (*links_of(0), WEB[-1])]
        again = Fetch(WEB[0], status=200, fetch_time="2025-11-04T00:00:00Z", relevance=0.5, outlinks=links)
        report = ReportMessage(VERSION, "c-1", [again, Fetch(WEB[1], reward=1.0)], MAIN.name, "correction")
        self.note(await self.insist(lambda: self.guide.tell(report)))

    def note(self, ack: Ack) -> None:
        assert [result.status for result in ack.results] == ["ok"] * len(ack.results)
        self.acked |= {result.url for result in ack.results}

    async def finish(self) -> None:
        """Until nothing is left; what was given out and never came back is given out again."""
        for _ in range(3):
            while await self.step():
                pass
            self.clock.advance(1_000.0)


def fetched(url: str) -> Fetch:
    """Every third page is relevant, and one in eight is missing."""
    page = WEB.index(url)
    status = 404 if page % 8 == 7 else 200
    links = [Outlink(target, anchor=f"to {target}") for target in links_of(page)]
    when = f"2025-11-03T14:{page:02d}:00Z"
    return Fetch(url, status=status, fetch_time=when, relevance=float(page % 3 == 0), elapsed_ms=100.0, outlinks=links)
