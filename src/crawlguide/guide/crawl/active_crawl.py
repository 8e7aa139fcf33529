"""One crawl as it runs: its definition with the judges built from it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import msgspec

from crawlguide.core.definition import Definition
from crawlguide.core.errors import MalformedRequest
from crawlguide.core.protocols import Hears, Rests, Sees
from crawlguide.core.types import Page
from crawlguide.features.relevance import Judge
from crawlguide.features.rewards import Rewards
from crawlguide.features.sitemap_facts import SitemapFacts
from crawlguide.guide.ask.regather_budget import RegatherBudget
from crawlguide.guide.crawl import composition
from crawlguide.guide.crawl.hand_rules import Weighing, weighing
from crawlguide.guide.robots import meta
from crawlguide.guide.tell.intake import NAN, Rules
from crawlguide.policy import banned, crawlers, link_rules, scope
from crawlguide.policy.domains import Domains
from crawlguide.policy.robots import Copies, Robots
from crawlguide.policy.rules import Rules as OperatorRules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.definition import Weights
    from crawlguide.core.messages import Fetch
    from crawlguide.core.protocols import Filter
    from crawlguide.guide.crawl.composition import Assembled
    from crawlguide.policy.profile import Profile
    from crawlguide.policy.rules.engine import Engine
    from crawlguide.strategies.composed.guard import GuardedStrategy


Kind = TypeVar("Kind")


class Record(msgspec.Struct):
    """What the store keeps of a crawl besides its frontier."""

    definition: Definition = msgspec.field(default_factory=Definition)
    paused: bool = False
    renew: tuple[str, ...] = ()  # states of which not every URL has been judged by this definition yet


@dataclass
class ActiveCrawl:
    record: Record
    strategy: Assembled
    judge: Judge | None  # of relevance, where a goal is given
    learner: GuardedStrategy | None  # the strategy as a whole, if something in it learns
    explorer: GuardedStrategy | None  # the same, if something explores
    weights: Weights
    filters: tuple[Filter, ...]
    rules: Rules
    until: float | None
    filters_applied: list[str]
    forbidding: tuple[str, ...]  # filters whose refusals are for good
    hearing: tuple[Hears, ...]  # filters that learn
    resting: frozenset[str]  # filters by which some URLs are looked at last
    weighing: Weighing
    crawlers: crawlers.Crawlers
    rewards: Rewards | None = None  # of what was fetched, where something learns
    robots: Robots | None = None  # None: robots.txt files do not count
    operator: OperatorRules | None = None  # None: the operator has no rules
    domains: Domains | None = None
    stated: SitemapFacts = field(default_factory=SitemapFacts)  # what sitemaps say of pages
    looks: RegatherBudget = field(default_factory=RegatherBudget)  # that asks may spend
    renewed_to: str | None = None  # how far the first of `record.renew` has come
    sought: dict[scope.Scope, tuple[int, int]] = field(default_factory=dict)  # where to look on for a scope's hosts

    @property
    def definition(self) -> Definition:
        return self.record.definition

    @property
    def shown(self) -> Definition:
        """The same to people: with the strategy that counts, whoever chose it."""
        named = {**self.strategy.table, **self.definition.strategy}
        return msgspec.structs.replace(self.definition, strategy=named)

    @property
    def profile(self) -> Profile | None:
        """What the crawl takes for slow and failing, by what it has met."""
        return self.domains.profile if self.domains is not None else None

    @property
    def kind(self) -> str:
        return self.strategy.kind


def activate(
    record: Record,
    filters: Sequence[str],
    strategy: Assembled,
    copies: Copies | None = None,
    engine: Engine | None = None,
) -> ActiveCrawl:
    """Build everything else that a definition asks for; raises `MalformedRequest` for what cannot be built."""
    definition, whole = record.definition, strategy.whole
    weights, rules = weighing(definition), _filters(filters, definition, copies or Copies(), engine)
    judge = Judge(definition.goal) if definition.goal else None
    learner = whole if whole.learns else None
    return ActiveCrawl(
        record=record,
        strategy=strategy,
        judge=judge,
        learner=learner,
        explorer=whole if whole.explores else None,
        weights=definition.weights.over(strategy.weights),
        filters=rules,
        filters_applied=[f"{rule.name}_ok" for rule in rules],
        forbidding=tuple(rule.name for rule in rules if rule.refusal in ("forbid", "either")),
        rules=_intake(definition, rules, judge, weights),
        hearing=tuple(rule for rule in rules if isinstance(rule, Hears)),
        resting=frozenset(rule.name for rule in rules if isinstance(rule, Rests)),
        until=instant(definition.limits.until),
        weighing=weights,
        crawlers=crawlers.build(definition),
        rewards=Rewards(definition.goal.reward) if learner is not None else None,
        robots=_first(Robots, rules),
        domains=_first(Domains, rules),
        operator=_first(OperatorRules, rules),
    )


def _intake(definition: Definition, filters: Sequence[Filter], judge: Judge | None, weights: Weighing) -> Rules:
    """What holds for everything that comes in."""
    bans, policy, robots = banned.build(definition), definition.policy, _first(Robots, filters)
    inside = _first(scope.Scope, filters) or scope.build(definition)
    return Rules(
        judge=lambda fetch: judged(fetch, judge),
        verdict=lambda host: None if inside.covers(host) else inside.name,
        max_depth=definition.limits.max_depth or -1,
        bans=bans.rule if bans else None,
        priorities=weights.urls,
        follows=lambda fetch, url: link_rules.follows(policy, fetch) and meta.follows(robots, fetch, url),
        keeps=lambda fetch, url: meta.keeps(robots, fetch, url),
        seers=tuple(rule for rule in filters if isinstance(rule, Sees)),
        seeded=inside.homes.add,
    )


def _first(kind: type[Kind], filters: Sequence[Filter]) -> Kind | None:
    return next((rule for rule in filters if isinstance(rule, kind)), None)


def _filters(names: Sequence[str], definition: Definition, copies: Copies, engine: Engine | None) -> tuple[Filter, ...]:
    """All crawls share the robots.txt files that are known, and the operator's rules.

    A crawl that ignores robots.txt has no such filter, and where there are no rules none has the other.
    """
    found: list[Filter] = []
    for rule in composition.filters(names, definition):
        if isinstance(rule, Robots):
            found += [replace(rule, copies=copies)] if rule.mode != "ignore" else []
        elif isinstance(rule, OperatorRules):
            found += [OperatorRules(engine)] if engine is not None else []
        else:
            found.append(rule)
    return tuple(found)


def inherit(new: ActiveCrawl, old: ActiveCrawl) -> None:
    """What filters have learned stays when a crawl is defined anew, and what is known of contents."""
    new.stated.inherit(old.stated)
    new.looks.inherit(old.looks)
    if new.rewards is not None and old.rewards is not None:
        new.rewards.inherit(old.rewards)
    known = {rule.name: rule for rule in old.hearing}
    for rule in new.hearing:
        if type(known.get(rule.name)) is type(rule):
            rule.inherit(known[rule.name])


def judged(fetch: Fetch, judge: Judge | None) -> float:
    """A downstream reward, else what the crawler says, else what the goal says; NaN where nobody says anything."""
    told = fetch.relevance if fetch.reward is None else min(max(fetch.reward, 0.0), 1.0)
    if judge is None or fetch.error or not (fetch.title or fetch.text):
        return NAN if told is None else told
    page = Page(fetch.url, fetch.title or "", fetch.text or "", fetch.status or 0)
    if told is None:
        return judge.judge(page)
    judge.hear(page, told)
    return told


def instant(text: str | None) -> float | None:
    """ISO 8601 to seconds since 1970; without a zone it means UTC."""
    if text is None:
        return None
    try:
        when = datetime.fromisoformat(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        where = "limits.until"
        raise MalformedRequest(f"{where}: expected an ISO 8601 instant, got {text[:64]!r}", field=where) from None
