"""Only what the crawl may visit: domains (allow and deny lists cover sub-domains, deny wins), not too deep."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls
from crawlguide.core.errors import MalformedRequest, UrlError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crawlguide.core.crawls import Definition
    from crawlguide.core.tables import Mask
    from crawlguide.core.types import Ask, Batch


@dataclass(frozen=True, eq=False)  # a name is looked up in what this very scope has said before
class Scope:
    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    max_depth: int = 0  # 0: no bound
    name: str = "scope"
    refusal: str = "forbid"

    def keep(self, batch: Batch, ask: Ask) -> Mask:  # noqa: ARG002 - every filter is given the ask
        near: Mask = batch.depth <= (self.max_depth or np.inf)
        if not self.allow and not self.deny:
            return near
        inside = np.array([self.covers(name) for name in batch.hosts.name], np.bool_)
        return near & inside[batch.host]

    def why(self, batch: Batch, ask: Ask) -> str:  # noqa: ARG002
        host, depth = urls.host_of(batch.hosts.name.tolist()[0]), int(batch.depth[0])
        names = _with_parents(host)
        if denied := sorted(self.deny.intersection(names)):
            return f"policy.deny_domains names {denied[0]}"
        if self.allow and self.allow.isdisjoint(names):
            return f"policy.allow_domains names neither {host} nor a domain above it"
        if self.max_depth and depth > self.max_depth:
            return f"it lies {depth} links from a seed, limits.max_depth is {self.max_depth}"
        return "its domain is permitted and it is not too deep"

    def covers(self, queue: str) -> bool:
        """May the crawl visit this politeness queue?"""
        return _covers(self, queue)


@lru_cache(maxsize=65_536)
def _covers(scope: Scope, queue: str) -> bool:
    names = _with_parents(urls.host_of(queue))
    if scope.deny and not scope.deny.isdisjoint(names):
        return False
    return not scope.allow or not scope.allow.isdisjoint(names)


def _with_parents(host: str) -> list[str]:
    """ "a.b.org" -> ["a.b.org", "b.org", "org"]; an address has no parents."""
    if host.startswith("[") or host.replace(".", "").isdigit():
        return [host]
    labels = host.rstrip(".").split(".")
    return [".".join(labels[start:]) for start in range(len(labels))]


def build(definition: Definition) -> Scope:
    policy = definition.policy
    allow = named(policy.allow_domains, "policy.allow_domains")
    return Scope(allow, named(policy.deny_domains, "policy.deny_domains"), definition.limits.max_depth)


def named(domains: Iterable[str], field: str) -> frozenset[str]:
    """Hosts as they stand in canonical URLs, however people write them."""
    return frozenset(host_named(domain, f"{field}[{number}]") for number, domain in enumerate(domains))


def host_named(domain: str, field: str) -> str:
    try:
        return urls.parts(urls.canonical(f"https://{domain.strip('.')}/")).host
    except UrlError:
        raise MalformedRequest(f"{field}: expected a domain, got {domain!r}", field=field) from None
