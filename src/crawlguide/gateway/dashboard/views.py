"""What the pages show, collected without giving anything out: numbers, what comes next, hosts, newest answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from crawlguide import scoring
from crawlguide.core.errors import NotFound
from crawlguide.core.turns import let_others
from crawlguide.core.types import Ask, Budget
from crawlguide.gateway.dashboard import drawing
from crawlguide.gateway.dashboard.formatting import share
from crawlguide.guide.ask.pipeline import slow_ms
from crawlguide.guide.monitoring import Recent
from crawlguide.policy import domains
from crawlguide.policy.domains import Domains

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.definition import Definition
    from crawlguide.core.messages import CrawlStats
    from crawlguide.core.types import Crawl, Hosts
    from crawlguide.gateway.dashboard.drawing import Curve, Part
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl
    from crawlguide.guide.local import LocalGuide
    from crawlguide.guide.monitoring import Answered

LOOKER = "dashboard"
RULES_FIRST = "the rules of its host come first"
NEXT_SHOWN, HOSTS_SHOWN, DECISIONS_SHOWN = 20, 20, 30


@dataclass(frozen=True)
class Overview:
    """One crawl in a few numbers."""

    name: str
    stats: CrawlStats
    definition: Definition
    curve: Curve | None

    @property
    def share(self) -> float | None:
        return share(self.stats.relevant, self.stats.fetches)

    @property
    def failing(self) -> bool:
        return is_much(self.stats.failed, self.stats.fetches)

    @property
    def dropped(self) -> list[tuple[str, int]]:
        """Reasons, the most frequent first."""
        return sorted(self.stats.dropped.items(), key=lambda item: -item[1])


@dataclass(frozen=True)
class GivenAnswer:
    """To whom a URL was given and when, and how many URLs of the same answer are not shown."""

    crawler_id: str
    ago_s: float
    more: int


@dataclass(frozen=True)
class Choice:
    """A URL with what speaks for it: one that was given out, or one that would be."""

    url: str
    score: float
    reason: str
    parts: list[Part]
    priority: float = 0.0
    wait_s: float = 0.0
    refused: str = ""  # why, if a filter keeps it out of the next answer
    given: GivenAnswer | None = None


@dataclass(frozen=True)
class Host:
    name: str
    waiting: int
    pages: int
    failures: int
    median_ms: float
    relevance: float
    opens_in_s: float
    withheld_s: float
    troubles: list[str]

    @property
    def failing(self) -> bool:
        return is_much(self.failures, self.pages + self.failures)


def is_much(failed: int, tried: int) -> bool:
    """Some fetches always fail; a fifth of them is worth a look."""
    return failed > 0 and 5 * failed >= tried


@dataclass(frozen=True)
class Detail:
    """One crawl at length."""

    crawl: Overview
    model: str
    upcoming: list[Choice]
    hosts: list[Host]
    decisions: list[Choice]


async def overviews(guide: LocalGuide, crawls: list[Crawl]) -> list[Overview]:
    """Others are served between two crawls; one that is deleted meanwhile is left out."""
    found = []
    for crawl in crawls:
        try:
            found.append(await overview(guide, crawl))
        except NotFound:
            continue
        await let_others()
    return found


async def overview(guide: LocalGuide, crawl: Crawl) -> Overview:
    at = guide.clock.now()
    outline = await guide.crawls.outline(crawl, at)
    stats = await guide.crawls.stats(crawl, at)
    harvest = guide.recent.get(crawl, Recent()).harvest
    return Overview(crawl.name, stats, outline.definition, drawing.curve(harvest, stats.fetches, stats.relevant))


async def detail(guide: LocalGuide, crawl: Crawl) -> Detail:
    active = await guide.crawls.get(crawl, guide.clock.now(), create=False)
    return Detail(
        crawl=await overview(guide, crawl),
        model=active.strategy.guarded.version,
        upcoming=await upcoming(guide, crawl, active),
        hosts=await hosts(guide, crawl, active),
        decisions=decisions(guide, crawl),
    )


async def upcoming(guide: LocalGuide, crawl: Crawl, active: ActiveCrawl) -> list[Choice]:
    """What an ask would be given now, then the best of what it would not."""
    look = await guide.pipeline.look(active, Ask(crawl, LOOKER, guide.clock.now(), Budget(NEXT_SHOWN)))
    refused = np.full(len(look.batch), "", object)
    for rule, rows, keep in look.verdicts:
        refused[rows[~keep]] = getattr(rule, "label", rule.name)
    order = np.argsort(refused != "", kind="stable")[:NEXT_SHOWN]
    batch, terms = look.batch.take(order), look.terms.take(order, 0)
    urls = batch.url.tolist()
    columns = zip(
        urls, batch.score.tolist(), map(_why, urls, scoring.reasons(terms).tolist()), _parts(urls, terms),
        batch.priority.tolist(), (batch.hosts.next_fetch[batch.host] - look.ask.at).tolist(), refused[order].tolist(),
        strict=True,
    )  # fmt: skip
    return [Choice(*row) for row in columns]


def _parts(urls: Sequence[str], terms: Any) -> list[list[Part]]:
    """The terms of each row, to the scale of the largest page; a robots.txt, which goes before all, is beyond it."""
    totals = np.maximum(terms, 0.0).sum(1)
    pages = totals[[not _is_rules(url) for url in urls]]
    longest = float((pages if len(pages) else totals).max(initial=0.0))
    return [drawing.parts(dict(zip(scoring.TERMS, row, strict=True)), longest) for row in terms.tolist()]


def _is_rules(url: str) -> bool:
    """Whether it is a robots.txt; a URL may be anything here, since clients of URLFrontier have their own spelling."""
    return url.endswith("/robots.txt") and url.count("/") == 3


def _why(url: str, reason: str) -> str:
    return RULES_FIRST if _is_rules(url) else reason


async def hosts(guide: LocalGuide, crawl: Crawl, active: ActiveCrawl) -> list[Host]:
    """Hosts with most URLs waiting first; among them are those that failed most."""
    at = guide.clock.now()
    found, waiting, withheld = await guide.store.hosts(crawl, HOSTS_SHOWN)
    relevance = np.where(found.judged > 0, found.relevance_sum / np.maximum(found.judged, 1), np.nan)
    columns = zip(
        list(found.name), waiting.tolist(), found.pages.astype(np.int64).tolist(),
        found.failures.astype(np.int64).tolist(), found.median_ms.tolist(), relevance.tolist(),
        np.maximum(found.next_fetch - at, 0.0).tolist(), np.maximum(withheld - at, 0.0).tolist(),
        troubles(guide, active, found, at), strict=True,
    )  # fmt: skip
    return sorted((Host(*row) for row in columns), key=lambda host: (-host.waiting, -host.pages))


def troubles(guide: LocalGuide, active: ActiveCrawl, found: Hosts, at: float) -> list[list[str]]:
    """What is to be said of each host, by the rules that the filters apply."""
    policy, rule = active.definition.policy, active.filter(Domains) or domains.build(active.definition)
    delay = np.fmax(policy.default_delay_s, found.crawl_delay)
    signs = {
        "failing": rule.unreliable(found, at),
        "full": rule.full(found) | ((found.limit > 0) & (found.leases >= found.limit)),
        "throttled": found.next_fetch - at > delay + max(policy.horizon_s, 1.0),
        "slow": found.median_ms > slow_ms(active, guide.pipeline.options),
    }
    return [[word for word, mask in signs.items() if mask[row]] for row in range(len(found.name))]


def decisions(guide: LocalGuide, crawl: Crawl) -> list[Choice]:
    """The best URLs of the newest answers, the newest first."""
    answers = reversed(guide.recent.get(crawl, Recent()).answers)
    given = [(answer, place, one) for answer in answers for place, one in enumerate(answer.best)][:DECISIONS_SHOWN]
    terms = np.array([msgspec.structs.astuple(one.terms) for _, _, one in given]).reshape(-1, len(scoring.TERMS))
    bars = _parts([one.url for _, _, one in given], terms)
    return [
        Choice(one.url, one.score, _why(one.url, one.reason), bar, given=_given(guide, answer, place))
        for (answer, place, one), bar in zip(given, bars, strict=True)
    ]


def _given(guide: LocalGuide, answer: Answered, place: int) -> GivenAnswer:
    """How many more URLs an answer gave is said beside the last that is shown."""
    more = answer.given - len(answer.best) if place == len(answer.best) - 1 else 0
    return GivenAnswer(answer.crawler_id, guide.clock.now() - answer.at, more)
