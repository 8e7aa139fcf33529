"""Only domains the crawl may visit: allow and deny lists cover sub-domains, and deny wins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls
from crawlguide.core.errors import MalformedRequest, UrlError

if TYPE_CHECKING:
    from crawlguide.core.crawls import Definition
    from crawlguide.core.tables import Mask
    from crawlguide.core.types import Ask, Batch


@dataclass(frozen=True)
class Scope:
    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    name: str = "scope"
    refusal: str = "forbid"

    def keep(self, batch: Batch, ask: Ask) -> Mask:  # noqa: ARG002 - every filter is given the ask
        if not self.allow and not self.deny:
            return np.ones(len(batch), np.bool_)
        inside = np.array([self.covers(name) for name in batch.hosts.name], np.bool_)
        return inside[batch.host]

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
    allow = _names(policy.allow_domains, "policy.allow_domains")
    return Scope(allow, _names(policy.deny_domains, "policy.deny_domains"))


def _names(domains: tuple[str, ...], field: str) -> frozenset[str]:
    """Hosts as they stand in canonical URLs, however people write them."""
    return frozenset(_host(domain, f"{field}[{number}]") for number, domain in enumerate(domains))


def _host(domain: str, field: str) -> str:
    try:
        return urls.parts(urls.canonical(f"https://{domain.strip('.')}/")).host
    except UrlError:
        raise MalformedRequest(f"{field}: expected a domain, got {domain!r}", field=field) from None
