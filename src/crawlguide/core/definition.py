"""The definition of a crawl: its goal, strategy, weights, policy, limits and rules, as the wire names them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

Share = Annotated[float, Meta(ge=0, le=1, description="a number from 0 to 1")]
Weight = Annotated[float, Meta(ge=-100, le=100, description="a number from -100 to 100")]
Count = Annotated[int, Meta(ge=0, le=2**53, description="an integer from 0 (0 means no limit)")]
Name = Annotated[str, Meta(min_length=1, max_length=253, description="a name of 1 to 253 characters")]
Words = Annotated[str, Meta(max_length=100_000, description="text of at most 100000 characters")]
Names = Annotated[tuple[Name, ...], Meta(max_length=100_000, description="a list of names")]
Kinds = Annotated[tuple[Name, ...], Meta(max_length=1_000, description="a list of at most 1000 names")]
Factor = Annotated[float, Meta(ge=0, le=100, description="a number from 0 to 100")]
Address = Annotated[str, Meta(min_length=1, max_length=8_192, description="a URL")]
Pattern = Annotated[str, Meta(min_length=1, max_length=1_000, description="an RE2 pattern of 1 to 1000 characters")]
AUTO: Literal["auto"] = "auto"  # learned from what the crawl meets, within bounds
JudgeKind = Annotated[
    Literal["semantic", "feedstock", "forager"], Meta(description="one of semantic, feedstock, forager")
]
Auto = Annotated[Literal["auto"], Meta(description='"auto"')]
MOST_URLS, MOST_PATTERNS = 10_000, 1_000
PatternList = Annotated[
    tuple[Pattern, ...], Meta(max_length=MOST_PATTERNS, description="a list of at most 1000 patterns")
]


class Fixed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of a definition: unknown fields are refused by name."""


class Reward(Fixed, frozen=True):
    """Weights of the reward that strategies learn from; the last three are penalties, none by default."""

    relevance: Weight = 1.0
    novelty: Weight = 0.2
    change: Weight = 0.2
    error: Weight | UnsetType = UNSET
    duplicate: Weight | UnsetType = UNSET
    cost: Weight | UnsetType = UNSET


class Goal(Fixed, frozen=True):
    """What the crawl is looking for. Every field is optional."""

    topic: Words = ""
    keywords: Annotated[tuple[Name, ...], Meta(max_length=1_000)] = ()
    reference: Words = ""
    anti_reference: Words = ""
    reward: Reward = Reward()
    judge: JudgeKind = "semantic"  # of pages whose relevance no crawler reports (features/relevance)

    def __bool__(self) -> bool:
        return bool(self.topic or self.keywords or self.reference)


class Weights(Fixed, frozen=True):
    """score = a·relevance + b·freshness + c·authority − d·cost + e·politeness (+ f·focus)."""

    relevance: Weight = 1.0
    freshness: Weight = 0.5
    authority: Weight = 0.3
    cost: Weight = 0.2
    politeness: Weight = 0.1
    focus: Weight = 0.1


class Reweigh(Fixed, frozen=True):
    """Weights that replace the defaults of the strategy; those left out keep their default."""

    relevance: Weight | UnsetType = UNSET
    freshness: Weight | UnsetType = UNSET
    authority: Weight | UnsetType = UNSET
    cost: Weight | UnsetType = UNSET
    politeness: Weight | UnsetType = UNSET
    focus: Weight | UnsetType = UNSET

    def over(self, weights: Weights) -> Weights:
        return msgspec.structs.replace(weights, **msgspec.to_builtins(self))


CLASSIC = Weights(**{name: float(name == "relevance") for name in Weights.__struct_fields__})  # by its value alone


class Crawler(Fixed, frozen=True):
    """Limits of one crawler, or of all crawlers with a name prefix. 0 means no limit."""

    max_urls: Count = 0
    max_leases: Count = 0
    allow_domains: Names = ()
    deny_domains: Names = ()


class Promise(Fixed, frozen=True):
    """How old copies of pages may be: `share` of those whose URLs match a pattern, at most so many seconds."""

    max_age_s: Annotated[float, Meta(ge=60, le=3.2e9, description="a number from 60 to 3200000000")]
    share: Annotated[float, Meta(gt=0, le=1, description="a number above 0, up to 1")] = 0.9
    patterns: PatternList = ()  # all pages without one


Recrawl = Annotated[Literal["off", "refresh", "monitor"], Meta(description="one of off, refresh, monitor")]
Promises = Annotated[tuple[Promise, ...], Meta(max_length=16, description="a list of at most 16 promises")]


class Policy(Fixed, frozen=True):
    """What may be fetched, and how fast."""

    robots: Annotated[Literal["obey", "crawler", "ignore"], Meta(description="one of obey, crawler, ignore")] = "obey"
    robots_exceptions: Names = ()
    sitemaps: bool = False
    user_agent: Name = "crawlguide"
    default_delay_s: Annotated[float, Meta(ge=0, le=86_400, description="a number from 0 to 86400")] = 1.0
    strict: bool = False
    horizon_s: Annotated[float, Meta(ge=0, le=3_600, description="a number from 0 to 3600")] = 5.0
    delay_factor: Factor = 0.5
    max_per_host: Count = 5
    max_per_domain: Count = 0
    max_leases_per_host: Count = 0
    slow_domain_ms: Annotated[float, Meta(ge=0, le=1e9, description="a number from 0")] | Auto = 0.0
    domain_max_pages: Count | Auto = 0
    unreliable_threshold: Share | Auto = 0.8
    unreliable_after: Annotated[int, Meta(ge=1, le=1_000_000, description="an integer from 1")] = 10
    max_retries: Annotated[int, Meta(ge=0, le=100, description="an integer from 0 to 100")] = 3
    allow_domains: Names = ()
    deny_domains: Names = ()
    include_patterns: PatternList = ()
    exclude_patterns: PatternList = ()
    seed_hosts_only: bool = False
    languages: Kinds = ()
    deny_extensions: Kinds = ()
    deny_content_types: Kinds = ()
    domain_weights: Annotated[dict[Name, Weight], Meta(max_length=100_000)] = {}
    crawlers: Annotated[dict[Name, Crawler], Meta(max_length=10_000)] = {}
    traps: bool = True
    trap_patterns: PatternList = ()
    risk_threshold: Share = 0.8
    min_p: Share = 0.0
    recrawl: bool | Recrawl = False  # true: after `recrawl_after_s`, whatever changes
    recrawl_after_s: Annotated[float, Meta(ge=1, le=3.2e9, description="a number from 1 to 3200000000")] = 7 * 86_400.0
    recrawl_share: Share | Auto = AUTO  # of what is given out; auto: what is worth more goes first
    recrawl_per_day: Count = 0
    promises: Promises = ()

    @property
    def fetches_again(self) -> bool:
        return self.recrawl not in (False, "off")

    @property
    def learns_changes(self) -> bool:
        """Pages are fetched again as often as they change, and not after a fixed time."""
        return self.recrawl in ("refresh", "monitor")


class Limits(Fixed, frozen=True):
    """When the crawl is finished. 0 or null means never."""

    max_pages: Count = 0
    max_depth: Count = 0
    until: Annotated[str, Meta(max_length=64, description="an ISO 8601 instant")] | None = None


class Bans(Fixed, frozen=True):
    """What may not be fetched: URLs, hosts at any port, and URLs that match a pattern."""

    urls: Annotated[tuple[Address, ...], Meta(max_length=MOST_URLS, description="a list of at most 10000 URLs")] = ()
    hosts: Names = ()
    patterns: PatternList = ()


class Priorities(Fixed, frozen=True):
    """Priorities of URLs, and factors for all URLs of a host or that match a pattern."""

    urls: Annotated[dict[Address, Share], Meta(max_length=MOST_URLS)] = {}
    hosts: Annotated[dict[Name, Factor], Meta(max_length=100_000)] = {}
    patterns: Annotated[dict[Pattern, Factor], Meta(max_length=MOST_PATTERNS)] = {}


class HandRules(Fixed, frozen=True):
    """Bans and priorities that people set while the crawl runs."""

    ban: Bans = Bans()
    priority: Priorities = Priorities()


class PriorityEdit(Fixed, frozen=True):
    """Priorities to set; null removes one."""

    urls: Annotated[dict[Address, Share | None], Meta(max_length=MOST_URLS)] = {}
    hosts: Annotated[dict[Name, Factor | None], Meta(max_length=100_000)] = {}
    patterns: Annotated[dict[Pattern, Factor | None], Meta(max_length=MOST_PATTERNS)] = {}


class RulesEdit(Fixed, frozen=True):
    """Rules to add to a running crawl, and rules to remove."""

    ban: Bans = Bans()
    unban: Bans = Bans()
    priority: PriorityEdit = PriorityEdit()


class Definition(Fixed, frozen=True):
    """Everything a user says about one crawl."""

    goal: Goal = Goal()
    strategy: dict[str, Any] = {}  # empty: the operator's choice, or `layered`
    weights: Reweigh = Reweigh()
    policy: Policy = Policy()
    limits: Limits = Limits()
    rules: HandRules = HandRules()


def pattern_lists(definition: Definition) -> dict[str, tuple[str, ...]]:
    """All patterns of a crawl, by the field they stand in."""
    policy, rules = definition.policy, definition.rules
    return {
        "policy.include_patterns": policy.include_patterns,
        "policy.exclude_patterns": policy.exclude_patterns,
        "policy.trap_patterns": policy.trap_patterns,
        **{f"policy.promises[{row}].patterns": one.patterns for row, one in enumerate(policy.promises) if one.patterns},
        "rules.ban.patterns": rules.ban.patterns,
        "rules.priority.patterns": tuple(rules.priority.patterns),
    }


def domain_lists(definition: Definition) -> dict[str, Collection[str]]:
    """All domains of a crawl, each with what is below it, by the field they stand in."""
    policy, lists = definition.policy, ("allow_domains", "deny_domains", "robots_exceptions", "domain_weights")
    crawlers = {
        f"policy.crawlers.{key}.{name}": getattr(one, name)
        for key, one in policy.crawlers.items()
        for name in lists[:2]
    }
    return {f"policy.{name}": getattr(policy, name) for name in lists} | crawlers


def host_lists(definition: Definition) -> dict[str, Collection[str]]:
    """All single hosts of a crawl, by the field they stand in."""
    rules = definition.rules
    return {"rules.ban.hosts": rules.ban.hosts, "rules.priority.hosts": rules.priority.hosts}
