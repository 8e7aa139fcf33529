"""One run: one policy, one task, through ask and tell of a real guide, until the budget is spent."""

from __future__ import annotations

import time
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from crawlguide.core.config import Config, CrawlsOptions
from crawlguide.core.definition import Definition
from crawlguide.core.errors import ConfigError, ModelUnavailable
from crawlguide.core.messages import VERSION, AskMessage, BudgetMessage, Fetch, Outlink, ReportMessage
from crawlguide.core.urls import identity
from crawlguide.gateway.client import Client
from crawlguide.gateway.library import Guide
from crawlguide.lab import policy_names
from crawlguide.lab.budgeted_web import BudgetedWeb
from crawlguide.lab.pages import MOST_LINKS
from crawlguide.lab.policies import oracle_full
from crawlguide.lab.results import Run
from crawlguide.strategies.composed.guard import BY_ANOTHER, BY_HEURISTIC, UNLEARNED
from crawlguide.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crawlguide.core.messages import Ack, Advice
    from crawlguide.lab.pages import Page, Task, Web
    from crawlguide.lab.watch import Watch

TURN_S = 0.05  # the lab's clock between two asks: no lease ends, and what failed may be tried again some day
PATIENCE = 100  # asks in a row that give nothing although something waits
MOST_BYTES = 3_000_000  # of a message, which may have 4 MiB
SAMPLE = 20  # one page of so many is labelled by the feedback `sample`
LINK_BYTES = 60  # what a link weighs in a message besides its URL and anchor


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What all runs of one command have in common."""

    seeds_from: str = "auto"
    budget: int = 2_000
    batch: int = 10
    crawlers: int = 1
    feedback: str = "label"
    cap_per_host: int = 0
    seed: int = 0
    via: str | None = None


class CrawlerGuide(Protocol):
    """The part of a guide that a crawler needs, in this process or served elsewhere."""

    def define(self, crawl_id: str, definition: Definition, /) -> bool: ...
    def delete(self, crawl_id: str, /) -> None: ...
    def seed(self, crawl_id: str, urls: Sequence[str], /) -> int: ...
    def ask(self, message: AskMessage, /) -> Advice: ...
    def tell(self, message: ReportMessage, /) -> Ack: ...
    def stats(self, crawl_id: str | None = ..., /) -> dict[str, Any]: ...
    def explain(self, crawl_id: str, url: str, /) -> dict[str, Any]: ...


def run(web: Web, task: Task, policy: str, repeat: int, settings: Settings, watch: Watch | None = None) -> Run:
    """Run one policy on one task, until the budget is spent or nothing is left."""
    began = time.perf_counter()
    kind, seeds = seeds_of(web, task, settings.seeds_from)
    reachable = len(web.reachable(seeds) & task.relevant)
    seed = settings.seed + repeat
    budgeted = BudgetedWeb(web, task, seeds, settings.budget)
    if policy == policy_names.CEILING:
        predicted, cpu_s = ceiling(budgeted, min(reachable, settings.budget), settings.budget), 0.0
    else:
        with guide(policy, seed, settings) as (asked, clock):
            crawl = Crawlers(asked, clock, budgeted, crawl_id(policy, task, repeat), settings, watch)
            with crawl.defined(definition(web, task, policy, seeds, settings), seeds):
                crawl.run()
        predicted, cpu_s = crawl.predicted, crawl.cpu_s
    return Run(
        web=web.name, task=task.name, policy=policy, repeat=repeat, seed=seed, budget=settings.budget,
        batch=settings.batch, crawlers=settings.crawlers, seeds_from=kind, feedback=settings.feedback,
        reference=policy_names.is_reference(policy), relevant=budgeted.relevant, outcome="".join(budgeted.outcome),
        host=budgeted.host, p=predicted, targets=len(task.relevant), reachable=reachable,
        seconds=round(time.perf_counter() - began, 3),
        cpu_us_per_fetch=round(1e6 * cpu_s / max(len(budgeted.relevant), 1), 1),
    )  # fmt: skip


def seeds_of(web: Web, task: Task, wanted: str) -> tuple[str, tuple[str, ...]]:
    """The kind of start and its URLs; `auto` is the portal where the web has one, else far."""
    kinds = ("portal", "far", "near") if wanted == "auto" else (wanted,)
    kind = next((kind for kind in kinds if kind in task.seeds), None)
    if kind is None:
        kinds_here = ", ".join(task.seeds) or "none, as it has no seeds at all"
        raise ConfigError(f"--seeds-from: {task.name} on {web.name}: expected one of {kinds_here}; got {wanted!r}")
    return kind, task.seeds[kind]


def ceiling(budgeted: BudgetedWeb, most: int, budget: int) -> list[float | None]:
    """What nobody can pass: every fetch a target, as long as there are any."""
    budgeted.relevant = [1] * most + [0] * (budget - most)
    budgeted.outcome, budgeted.host = ["p"] * budget, [0] * budget
    return [None] * budget


def definition(web: Web, task: Task, policy: str, seeds: Sequence[str], settings: Settings) -> Definition:
    """By the lab's rules: relevance alone counts, nothing is paced, nothing refused, nothing fetched again."""
    strategy: dict[str, Any] = policy_names.strategy(policy)
    if policy == policy_names.ONE_HOP:
        strategy["gold"] = sorted(task.relevant)
    if policy == policy_names.FULL:
        strategy["order"] = oracle_full.best_order(web, task, seeds, settings.budget)
    if "ahead" in policy_names.options(policy):
        strategy["ahead"] = settings.batch * settings.crawlers
    return msgspec.convert(
        {
            "goal": {"topic": task.topic, "reward": {"relevance": 1, "novelty": 0, "change": 0}},
            "strategy": strategy,
            "weights": {
                "relevance": 1, "freshness": 0, "authority": 0, "cost": 0, "politeness": 0, "focus": 0,
            },
            "policy": {
                "robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "traps": False, "risk_threshold": 1,
                "unreliable_threshold": 1, "recrawl": False, "domain_max_pages": settings.cap_per_host,
            },
        },
        Definition,
    )  # fmt: skip


@contextmanager
def guide(policy: str, seed: int, settings: Settings) -> Iterator[tuple[CrawlerGuide, ManualClock | None]]:
    """A guide of this process on a clock of the lab's, or the one that is served elsewhere."""
    if settings.via is not None:
        with Client(settings.via) as client:
            yield client, None
        return
    clock = ManualClock()
    config = Config(crawls=CrawlsOptions(plugins=policy_names.plugins(policy)))
    with Guide.open(":memory:", clock=clock, seed=seed, config=config) as here:
        yield here, clock


def crawl_id(policy: str, task: Task, repeat: int) -> str:
    """A name that no other crawl of a guide has: not an interrupted run, nor one at the same time."""
    return f"lab-{policy}-{task.name}-{repeat}"[:190].replace("/", "-") + f"-{token_hex(4)}"


@dataclass
class Assigned:
    """What a crawler was assigned: it fetches and tells when its turn comes again, so others choose without knowing."""

    crawler: str
    urls: list[str]


class Crawlers:
    """Some crawlers in turn, each with one answer at a time."""

    def __init__(
        self,
        guide: CrawlerGuide,
        clock: ManualClock | None,
        web: BudgetedWeb,
        crawl_id: str,
        settings: Settings,
        watch: Watch | None = None,
    ) -> None:
        self._guide, self._clock, self._web, self._crawl_id = guide, clock, web, crawl_id
        self._settings, self._watch = settings, watch
        self._left = settings.budget
        self._starved = False
        self.predicted: list[float | None] = []
        self.cpu_s = 0.0

    @contextmanager
    def defined(self, definition: Definition, seeds: Sequence[str]) -> Iterator[None]:
        """A guide that goes on elsewhere is left as it was found."""
        self._guide.define(self._crawl_id, definition)
        try:
            self._guide.seed(self._crawl_id, list(seeds))
            yield
        finally:
            if self._clock is None:
                self._guide.delete(self._crawl_id)

    def run(self) -> None:
        turns = deque(Assigned(f"crawler-{number}", []) for number in range(self._settings.crawlers))
        while turns:
            mine = turns.popleft()
            if mine.urls:
                self._tell(mine.crawler, [self._fetched(url) for url in mine.urls])
            mine.urls = self._ask(mine.crawler, others=any(other.urls for other in turns))
            if mine.urls or any(other.urls for other in turns):
                turns.append(mine)

    def _ask(self, crawler: str, *, others: bool) -> list[str]:
        """The next URLs; none when the budget is spent, or when nothing is left that the policy wants."""
        wanted = min(self._settings.batch, self._left)
        if wanted <= 0 or self._starved:
            return []
        if self._watch is not None:
            self._watch.look(lambda url: self._guide.explain(self._crawl_id, url))
        for _ in range(PATIENCE):
            advice = self._timed(
                lambda: self._guide.ask(AskMessage(VERSION, crawler, BudgetMessage(wanted), crawl_id=self._crawl_id))
            )
            refuse_fallback(advice)
            if advice.assigned_urls or others or advice.metadata.crawl_state != "waiting":
                break
            self._wait(advice.retry_after_ms / 1_000)
        good = [one for one in advice.assigned_urls if one.score >= 0]
        self._starved = len(good) < len(advice.assigned_urls)  # below 0 lies what a policy has thrown away
        self._left -= len(good)
        self.predicted += [one.p for one in good]
        if self._watch is not None:
            self._watch.assigned(good)
        return [one.url for one in good]

    def _wait(self, seconds: float) -> None:
        if self._clock is None:
            time.sleep(seconds)
        else:
            self._clock.advance(seconds)

    def _fetched(self, url: str) -> Fetch:
        """What a crawler tells of a page."""
        page = self._web.fetch(url)
        if self._watch is not None:
            self._watch.fetched(url, page)
        return Fetch(
            url=url,
            status=page.status or None,
            error=page.error,
            elapsed_ms=page.elapsed_ms,
            bytes=page.size or None,
            content_hash=page.content_hash,
            title=page.title or None,
            text=page.text or None,
            language=page.language or None,
            relevance=self._web.label(url) if self._labels(url) else None,
            outlinks=outlinks(page),
        )

    def _labels(self, url: str) -> bool:
        """By the feedback `text` crawlers have no opinion of their own, by `sample` of a few pages, whatever policy."""
        feedback = self._settings.feedback
        return feedback == "label" or (feedback == "sample" and identity(url) % SAMPLE == 0)

    def _tell(self, crawler: str, fetches: list[Fetch]) -> None:
        for part in parts(fetches):
            message = ReportMessage(VERSION, crawler, part, self._crawl_id)
            self._timed(lambda message=message: self._guide.tell(message))
        if self._clock is not None:
            self._clock.advance(TURN_S)

    def _timed(self, step: Any) -> Any:
        """Processor time of the guide alone, without the web it is shown."""
        before = time.process_time()
        try:
            return step()
        finally:
            self.cpu_s += time.process_time() - before


def refuse_fallback(advice: Advice) -> None:
    """In service a simpler strategy stands in for one that fails; in the lab the figures would then be another's."""
    degraded = advice.metadata.degraded or ""
    if any(word in degraded for word in (BY_HEURISTIC, BY_ANOTHER, UNLEARNED)):
        raise ModelUnavailable(f"the policy failed: {degraded}: {advice.metadata.degraded_why}")


def outlinks(page: Page) -> list[Outlink]:
    """At most 2 000 links of a page are told. A redirect is a page with one link: going there is another fetch."""
    if page.redirected_to:
        return [Outlink(page.redirected_to)]
    return [Outlink(link.url, link.anchor, position=link.position) for link in page.links[:MOST_LINKS]]


def parts(fetches: list[Fetch]) -> Iterator[list[Fetch]]:
    """In as many messages as it takes; one, but for pages of very many links."""
    part: list[Fetch] = []
    weight = 0
    for fetch in fetches:
        mine = 4 * len(fetch.text or "") + sum(
            LINK_BYTES + len(link.url) + 4 * len(link.anchor) for link in fetch.outlinks or ()
        )
        if part and weight + mine > MOST_BYTES:
            yield part
            part, weight = [], 0
        part.append(fetch)
        weight += mine
    if part:
        yield part
