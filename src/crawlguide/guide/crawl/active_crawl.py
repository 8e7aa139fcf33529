"""One crawl as it runs: its definition with the judges built from it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from math import isnan
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from crawlguide import policy
from crawlguide.core.clock import instant
from crawlguide.core.definition import Definition
from crawlguide.core.errors import MalformedRequest
from crawlguide.core.protocols import JudgesLinks, LearnsFromFetches
from crawlguide.features.relevance import Judge
from crawlguide.features.rewards import Rewards
from crawlguide.features.sitemap_facts import SitemapFacts
from crawlguide.guide.ask.gathering import RegatherBudget
from crawlguide.guide.crawl import composition
from crawlguide.guide.crawl.hand_rules import ManualFactors, manual_factors
from crawlguide.guide.recrawl.refresher import Refresher
from crawlguide.guide.robots.marks import Marks
from crawlguide.guide.tell.intake import NAN, IntakeRules
from crawlguide.guide.tell.pages import is_readable, page_of, told_relevance
from crawlguide.policy import banned, crawlers, link_rules, scope
from crawlguide.policy.domains import Domains
from crawlguide.policy.robots import Robots
from crawlguide.policy.robots.cache import DUE_AFTER_S
from crawlguide.policy.traps import Traps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.definition import Weights
    from crawlguide.core.messages import Fetch
    from crawlguide.core.protocols import Filter
    from crawlguide.guide.crawl.composition import Assembled
    from crawlguide.policy.profile import Profile
    from crawlguide.strategies.composed.guard import GuardedStrategy


Kind = TypeVar("Kind")
MOST_MET = 20_000


class CrawlRecord(msgspec.Struct):
    """What the store keeps of a crawl besides its frontier."""

    definition: Definition = msgspec.field(default_factory=Definition)
    paused: bool = False
    renew: tuple[str, ...] = ()  # states of which not every URL has been judged by this definition yet


BLANK = msgspec.json.encode(CrawlRecord())  # of a crawl that nobody defined


class Outlined(Protocol):
    """What the state of a crawl follows from, be it loaded or not."""

    @property
    def record(self) -> CrawlRecord: ...

    @property
    def definition(self) -> Definition: ...

    @property
    def until(self) -> float | None: ...


@dataclass(frozen=True)
class Outline:
    """A crawl at rest: only what its record says."""

    record: CrawlRecord
    definition: Definition
    until: float | None
    strategy: Mapping[str, Any]  # its own, or the operator's

    @property
    def strategy_kind(self) -> str:
        return str(self.strategy.get("kind", "layered"))

    @property
    def shown(self) -> Definition:
        """What the crawl says itself, to be sent back as it is; where it names no strategy, with the operator's."""
        own = self.record.definition
        named = own.strategy if "kind" in own.strategy else {"kind": "layered", **self.strategy, **own.strategy}
        return msgspec.structs.replace(own, strategy=named)


@dataclass
class ActiveCrawl:
    record: CrawlRecord
    definition: Definition  # as it counts: with what the operator says of fields that the crawl leaves open
    strategy: Assembled
    judge: Judge | None  # of relevance, where a goal is given
    learner: GuardedStrategy | None  # the strategy as a whole, if something in it learns
    explorer: GuardedStrategy | None  # the same, if something explores
    weights: Weights
    filters: tuple[Filter, ...]
    filters_applied: list[str]  # as answers name them
    learning_filters: tuple[LearnsFromFetches, ...]
    intake: IntakeRules
    until: float | None
    manual_factors: ManualFactors
    crawlers: crawlers.Crawlers
    rewards: Rewards | None = None  # of what was fetched, where something learns
    met: Marks = field(default_factory=lambda: Marks(MOST_MET, DUE_AFTER_S))  # origins whose robots.txt it has met
    sitemap_facts: SitemapFacts = field(default_factory=SitemapFacts)
    regathers: RegatherBudget = field(default_factory=RegatherBudget)  # that asks may spend
    refresher: Refresher | None = None  # of a crawl that fetches pages again as they change
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)  # one ask after the other
    renewed_to: str | None = None  # how far the first of `record.renew` has come
    scope_cursors: dict[scope.Scope, tuple[int, int]] = field(default_factory=dict)  # where to look on for its hosts

    def filter(self, kind: type[Kind]) -> Kind | None:
        """The filter of a kind, if the crawl has it."""
        return _first(kind, self.filters)

    @property
    def profile(self) -> Profile | None:
        """What the crawl takes for slow and failing, by what it has met."""
        domains = self.filter(Domains)
        return None if domains is None else domains.profile


def activate(
    record: CrawlRecord,
    definition: Definition,
    filters: Sequence[str],
    strategy: Assembled,
    services: policy.Services | None = None,
    revivable: frozenset[str] = frozenset(),
) -> ActiveCrawl:
    """Build everything else that a definition asks for; raises `MalformedRequest` for what cannot be built."""
    guarded = strategy.guarded
    weights, rules = manual_factors(definition), composition.filters(filters, definition, services or policy.Services())
    judge = Judge(definition.goal) if definition.goal else None
    learner = guarded if guarded.learns else None
    return ActiveCrawl(
        record=record,
        definition=definition,
        strategy=strategy,
        judge=judge,
        learner=learner,
        explorer=guarded if guarded.explores else None,
        weights=definition.weights.over(strategy.weights),
        filters=rules,
        filters_applied=[f"{rule.name}_ok" for rule in rules],
        learning_filters=tuple(rule for rule in rules if isinstance(rule, LearnsFromFetches)),
        intake=replace(_intake(definition, rules, judge, weights), revivable=revivable),
        until=ends_at(definition),
        manual_factors=weights,
        crawlers=crawlers.build(definition),
        rewards=Rewards(definition.goal.reward) if learner is not None else None,
        refresher=Refresher(definition.policy) if definition.policy.learns_changes else None,
    )


def _intake(
    definition: Definition, filters: Sequence[Filter], judge: Judge | None, weights: ManualFactors
) -> IntakeRules:
    """What holds for everything that comes in."""
    bans, wanted = _first(banned.Banned, filters) or banned.build(definition), definition.policy
    robots, traps = _first(Robots, filters), _first(Traps, filters)
    inside = _first(scope.Scope, filters) or scope.build(definition)
    patterns = (inside.link_rules.include, inside.link_rules.exclude, bans.patterns, weights.patterns)
    return IntakeRules(
        judge=lambda fetch: relevance_of(fetch, judge),
        verdict=lambda host: None if inside.covers(host) else inside.name,
        max_depth=definition.limits.max_depth or -1,
        bans=bans.rule if bans else None,
        priorities=weights.urls,
        follows=lambda fetch, url: link_rules.follows(wanted, fetch) and (robots is None or robots.follows(fetch, url)),
        keeps=None if robots is None else robots.keeps,
        link_judges=tuple(rule for rule in filters if isinstance(rule, JudgesLinks)),
        seeded=inside.seed_hosts.add,
        patterns=tuple(filter(None, (*patterns, *((traps.patterns,) if traps else ())))),
    )


def _first(kind: type[Kind], filters: Sequence[Filter]) -> Kind | None:
    return next((rule for rule in filters if isinstance(rule, kind)), None)


def inherit(new: ActiveCrawl, old: ActiveCrawl) -> None:
    """What filters have learned stays when a crawl is defined anew, and what is known of contents."""
    new.asking = old.asking
    new.sitemap_facts.inherit(old.sitemap_facts)
    new.regathers.inherit(old.regathers)
    if new.refresher is not None and old.refresher is not None:
        new.refresher.inherit(old.refresher)
    if new.rewards is not None and old.rewards is not None:
        new.rewards.inherit(old.rewards)
    known = {rule.name: rule for rule in old.learning_filters}
    for rule in new.learning_filters:
        if type(known.get(rule.name)) is type(rule):
            rule.inherit(known[rule.name])


def relevance_of(fetch: Fetch, judge: Judge | None) -> float:
    """What is told of a page, else what the goal says; NaN where nobody says anything."""
    told = told_relevance(fetch)
    if told is None and judge is not None and is_readable(fetch):
        return judge.judge(page_of(fetch))
    return NAN if told is None else told


def ends_at(definition: Definition) -> float | None:
    """When the crawl is over; None: never."""
    text = definition.limits.until
    if text is None:
        return None
    when = instant(text)
    if isnan(when):
        where = "limits.until"
        raise MalformedRequest(f"{where}: expected an ISO 8601 instant, got {text[:64]!r}", field=where)
    return when
