"""Only what this crawler may fetch: a crawler may have a scope of its own, within that of the crawl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crawlguide.core.definition import Crawler
from crawlguide.core.value_cache import ValueCache
from crawlguide.policy.scope import MOST_KNOWN, Scope, named
from crawlguide.policy.seed_hosts import SeedHosts

if TYPE_CHECKING:
    from crawlguide.core.definition import Definition
    from crawlguide.core.tables import Mask
    from crawlguide.core.types import Ask, Batch

MANY = "*"


@dataclass(frozen=True)
class Crawlers:
    """What `policy.crawlers` says, with the scope of each entry that has one."""

    label: ClassVar = "not for this crawler"
    entries: Mapping[str, Crawler]
    scopes: Mapping[str, Scope]
    name: str = "crawlers"
    refusal: str = "pass"

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        scope = self.scope_of(ask.crawler_id)
        return np.ones(len(batch), np.bool_) if scope is None else scope.keep(batch, ask)

    def scope_of(self, crawler_id: str) -> Scope | None:
        """Where this crawler may go; None: wherever the crawl may."""
        key = self._key(crawler_id)
        return None if key is None else self.scopes.get(key)

    def bounds_of(self, crawler_id: str) -> Crawler:
        """How much this crawler may have."""
        key = self._key(crawler_id)
        return UNBOUND if key is None else self.entries[key]

    def why(self, batch: Batch, ask: Ask) -> str:
        may_not = [key for key, scope in self.scopes.items() if not scope.keep(batch, ask)[0]]
        return f"policy.crawlers keeps it from {', '.join(may_not[:5])}" if may_not else "every crawler may fetch it"

    def _key(self, crawler_id: str) -> str | None:
        """The entry of that name, else the longest entry that is a prefix of it followed by `*`."""
        if not self.entries or crawler_id in self.entries:
            return crawler_id if self.entries else None
        beginnings = (crawler_id[:length] + MANY for length in range(len(crawler_id), -1, -1))
        return next((key for key in beginnings if key in self.entries), None)


UNBOUND = Crawler()
NO_SEEDS, UNJUDGED = SeedHosts(), ValueCache()  # empty for ever


def build(definition: Definition) -> Crawlers:
    entries = definition.policy.crawlers
    bounded = {key: one for key, one in entries.items() if one.allow_domains or one.deny_domains}
    return Crawlers(entries, {key: _scope(key, one, MOST_KNOWN // len(bounded)) for key, one in bounded.items()})


def _scope(key: str, one: Crawler, most_known: int) -> Scope:
    """Its domains and nothing else, so that very many take little room, however many hosts they meet."""
    where = f"policy.crawlers.{key}"
    allow, deny = named(one.allow_domains, f"{where}.allow_domains"), named(one.deny_domains, f"{where}.deny_domains")
    return Scope(allow, deny, seed_hosts=NO_SEEDS, judged=UNJUDGED, most_known=most_known)
