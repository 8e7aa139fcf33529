"""Only what the crawl may visit: domains (allow and deny lists cover sub-domains, deny wins), wanted URLs, depth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crawlguide.core import urls
from crawlguide.core.definition import domain_lists, host_lists
from crawlguide.core.errors import MalformedRequest, UrlError
from crawlguide.core.value_cache import ValueCache
from crawlguide.policy.link_rules import LinkRules, link_rules
from crawlguide.policy.seed_hosts import KIND, SeedHosts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from crawlguide.core.definition import Definition
    from crawlguide.core.notebook import Notebook
    from crawlguide.core.tables import U64, Mask
    from crawlguide.core.types import Ask, Batch, Lesson

EVERYTHING = LinkRules()
FOR_DOMAINS = "policy.deny_domains and policy.domain_weights are for domains with all below them"
MOST_KNOWN = 65_536  # politeness queues of which a scope remembers what it said


@dataclass(frozen=True, eq=False)  # each is itself alone: it has what it has said before
class Scope:
    label: ClassVar = "out of scope"
    revivable: ClassVar = True
    reads: ClassVar = (
        "policy.allow_domains", "policy.deny_domains", "policy.seed_hosts_only", "policy.include_patterns",
        "policy.exclude_patterns", "policy.deny_extensions", "policy.deny_content_types", "limits.max_depth",
    )  # fmt: skip

    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    max_depth: int = 0  # 0: no bound
    seed_hosts_only: bool = False  # only hosts of seeds
    link_rules: LinkRules = EVERYTHING
    seed_hosts: SeedHosts = field(default_factory=SeedHosts)
    judged: ValueCache = field(default_factory=ValueCache)  # 1 for URLs that are wanted, 0 for others
    known: dict[str, bool] = field(default_factory=dict)  # what was said of politeness queues; it goes with the scope
    most_known: int = MOST_KNOWN
    name: str = "scope"
    refusal: str = "forbid"

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        keep: Mask = batch.depth <= (self.max_depth or np.inf)
        if self.allow or self.deny or self.seed_hosts_only:
            inside = np.array([self.covers(name) for name in batch.hosts.name], np.bool_)
            keep &= inside[batch.host]
        if self.link_rules:
            keep &= self._wanted(batch)
        return keep

    def _wanted(self, batch: Batch) -> Mask:
        """Seeds always are: somebody vouches for them. Texts are read only for rows that are not in the cache."""
        found, misses = self.judged.get(batch.id)
        if len(misses):
            texts = batch.url[misses].tolist()
            found[misses] = [self.link_rules.why_not(url) is None for url in texts]
            self.judged.put(batch.id[misses], found[misses])
        keep: Mask = (found > 0) | (batch.depth == 0)
        return keep

    def judge_links(
        self, queues: Sequence[str], urls: Sequence[str], pages: Sequence[str], ids: U64
    ) -> list[str | None]:
        """Why each URL is dropped when it is found, by itself; None: it is not."""
        if not self.link_rules:
            return [None] * len(urls)
        reasons = [self.link_rules.why_not(url) for url in urls]
        self.judged.put(ids, np.array([reason is None for reason in reasons], np.float64))
        return reasons

    def learn(self, lesson: Lesson) -> None:
        self.seed_hosts.moved(lesson.fetches)

    def remember(self, notebook: Notebook) -> None:
        self.seed_hosts.keep_in(notebook.sheet("homes", KIND))

    def inherit(self, before: Scope) -> None:
        self.seed_hosts.take(before.seed_hosts)

    def why(self, batch: Batch, ask: Ask) -> str:
        queue, depth = batch.hosts.name.tolist()[0], int(batch.depth[0])
        host, unwanted = urls.host_of(queue), self.link_rules.why_not(batch.url.tolist()[0])
        names = _with_parents(host)
        if unwanted is not None and depth:
            return unwanted
        if self.seed_hosts_only and queue not in self.seed_hosts:
            return f"policy.seed_hosts_only is set, and {host} is the host of no seed"
        if denied := sorted(self.deny.intersection(names)):
            return f"policy.deny_domains names {denied[0]}"
        if self.allow and self.allow.isdisjoint(names):
            return f"policy.allow_domains names neither {host} nor a domain above it"
        if self.max_depth and depth > self.max_depth:
            return f"it lies {depth} links from a seed, limits.max_depth is {self.max_depth}"
        return "its domain is permitted and it is not too deep"

    def covers(self, queue: str) -> bool:
        """May the crawl visit this politeness queue?"""
        found = self.known.get(queue)
        if found is None:
            if len(self.known) >= self.most_known:
                self.known.clear()
            found = self.known[queue] = self._names(queue)
        return found and (not self.seed_hosts_only or queue in self.seed_hosts)

    def _names(self, queue: str) -> bool:
        names = _with_parents(urls.host_of(queue))
        if self.deny and not self.deny.isdisjoint(names):
            return False
        return not self.allow or not self.allow.isdisjoint(names)


def _with_parents(host: str) -> list[str]:
    """ "a.b.org" -> ["a.b.org", "b.org", "org"]; an address has no parents."""
    if host.startswith("[") or host.replace(".", "").isdigit():
        return [host]
    labels = host.rstrip(".").split(".")
    return [".".join(labels[start:]) for start in range(len(labels))]


def build(definition: Definition) -> Scope:
    policy = definition.policy
    allow, deny = named(policy.allow_domains, "policy.allow_domains"), named(policy.deny_domains, "policy.deny_domains")
    return Scope(allow, deny, definition.limits.max_depth, policy.seed_hosts_only, link_rules(policy))


def named(domains: Iterable[str], field: str) -> frozenset[str]:
    """Domains in the form they have in canonical URLs, however people write them."""
    return frozenset(domain_named(domain, f"{field}[{number}]") for number, domain in enumerate(domains))


def domain_named(domain: str, field: str) -> str:
    """A domain stands for what is below it, too; many write that as `*.example.com`."""
    return host_named(_below(domain), field)


def host_named(domain: str, field: str) -> str:
    """Also where somebody gives a URL of it: taken as it stands it would name the host `https`."""
    name = _without_scheme(domain).strip(".")
    try:
        return urls.parts(urls.canonical(f"https://{name}/")).host
    except UrlError:
        raise MalformedRequest(f"{field}: expected a domain, got {domain!r}", field=field) from None


def check_names(new: Definition, old: Definition) -> None:
    """No host has a star in its name, so a rule with one is for nobody. What was taken before may stay until lifted."""
    before = host_lists(old) | domain_lists(old)
    for where, hosts in host_lists(new).items():
        for host in _added(hosts, before[where]):
            raise MalformedRequest(f"{where}: expected one host, got {host!r}; {FOR_DOMAINS}", field=where)
    for where, domains in domain_lists(new).items():
        for domain in _added(domains, before.get(where, ())):
            if "*" in _below(domain):
                raise MalformedRequest(f"{where}: expected a domain, got {domain!r}", field=where)


def _added(names: Iterable[str], before: Iterable[str]) -> list[str]:
    """Names with a star that were not there before."""
    known = frozenset(before)
    return [name for name in names if "*" in name and name not in known]


def _below(domain: str) -> str:
    """The domain of which all that is below it is meant."""
    return _without_scheme(domain).removeprefix("*.")


def _without_scheme(domain: str) -> str:
    _, scheme, rest = domain.partition("://")
    return rest if scheme else domain
