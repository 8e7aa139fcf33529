"""Nothing that people have banned by hand: URLs, whole hosts, and URLs that match a pattern."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crawlguide.core import urls
from crawlguide.core.errors import MalformedRequest, UrlError
from crawlguide.core.patterns import Patterns
from crawlguide.policy.scope import host_named

if TYPE_CHECKING:
    from crawlguide.core.definition import Definition
    from crawlguide.core.tables import U64, Mask
    from crawlguide.core.types import Ask, Batch


@dataclass(frozen=True)
class Banned:
    label: ClassVar = "banned"
    revivable: ClassVar = True
    reads: ClassVar = ("rules.ban",)

    urls: frozenset[str]
    hosts: frozenset[str]
    patterns: Patterns
    ids: U64 = field(compare=False)  # of the URLs
    name: str = "banned"
    refusal: str = "forbid"

    def __bool__(self) -> bool:
        return bool(self.urls or self.hosts or self.patterns)

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        keep = np.ones(len(batch), np.bool_)
        if self.urls:
            keep &= ~np.isin(batch.id, self.ids)
        if self.hosts:
            keep &= ~np.array([urls.host_of(name) in self.hosts for name in batch.hosts.name], np.bool_)[batch.host]
        if self.patterns:  # only now are the texts of URLs read
            keep[keep] = [not self.patterns.found(url) for url in batch.url[keep]]
        return keep

    def rule(self, url: str, queue: str) -> str | None:
        """The rule that bans a canonical URL, in words; None if it may be fetched."""
        if url in self.urls:
            return "rules.ban.urls names it"
        if (host := urls.host_of(queue)) in self.hosts:
            return f"rules.ban.hosts names {host}"
        found = self.patterns.found(url)
        return f"rules.ban.patterns holds {self.patterns.texts[found[0]]!r}" if found else None

    def why(self, batch: Batch, ask: Ask) -> str:
        return self.rule(batch.url.tolist()[0], batch.hosts.name.tolist()[0]) or "no rule bans it"


def build(definition: Definition) -> Banned:
    ban, where = definition.rules.ban, "rules.ban"
    known = [address(url, f"{where}.urls[{number}]") for number, url in enumerate(ban.urls)]
    ids = np.array([urls.identity(url) for url in known], np.uint64)
    hosts = frozenset(host_named(host, f"{where}.hosts[{number}]") for number, host in enumerate(ban.hosts))
    return Banned(frozenset(known), hosts, Patterns(ban.patterns, f"{where}.patterns"), ids)


def address(url: str, field: str) -> str:
    """The canonical form of a URL in a rule."""
    try:
        return urls.canonical(url)
    except UrlError as wrong:
        raise MalformedRequest(f"{field}: {wrong.message}", field=field) from None
