"""Bans and priorities that people set while a crawl runs: edits of them, and how they weigh."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np

from crawlguide.core import urls
from crawlguide.core.definition import Bans, HandRules, Priorities
from crawlguide.core.errors import MalformedRequest
from crawlguide.core.patterns import Patterns, check
from crawlguide.policy.banned import address
from crawlguide.policy.scope import domain_named, host_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from crawlguide.core.definition import Definition, RulesEdit
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Batch

Number = TypeVar("Number")
WEIGHTS = "policy.domain_weights"


@dataclass(frozen=True)
class ManualFactors:
    """Factors on the priority of URLs, by domain, host and pattern; and the priorities of single URLs, which win."""

    urls: Mapping[str, float]
    hosts: Mapping[str, float]
    patterns: Patterns
    factors: tuple[float, ...]  # of each pattern
    domains: Mapping[str, float] = field(default_factory=dict)  # with all hosts below them

    def apply(self, value: F64, batch: Batch) -> F64:
        """Each value times the factors that hold for its URL."""
        if self.hosts or self.domains:
            value = value * np.array([self._of_host(urls.host_of(name)) for name in batch.hosts.name])[batch.host]
        if self.patterns:
            value = value * np.array([self._of_patterns(url) for url in batch.url])
        return value

    def _of_host(self, host: str) -> float:
        domain = self._domain(host)
        return self.hosts.get(host, 1.0) * (1.0 if domain is None else self.domains[domain])

    def _domain(self, host: str) -> str | None:
        """The smallest domain with a weight in which a host lies."""
        while host and host not in self.domains:
            host = host.partition(".")[2]
        return host or None

    def _of_patterns(self, url: str) -> float:
        return float(np.prod([self.factors[number] for number in self.patterns.found(url)]))

    def why(self, url: str, queue: str) -> list[str]:
        """The rules that weigh a canonical URL, in words."""
        if url in self.urls:
            return [f"rules.priority.urls sets its priority to {self.urls[url]:g}"]
        host, matching = urls.host_of(queue), self.patterns.found(url)
        words = [f"rules.priority.hosts weighs {host} by {self.hosts[host]:g}"] if host in self.hosts else []
        if domain := self._domain(host):
            words.append(f"policy.domain_weights weighs {domain} by {self.domains[domain]:g}")
        patterns = [(self.patterns.texts[number], self.factors[number]) for number in matching]
        return words + [f"rules.priority.patterns weighs {text!r} by {factor:g}" for text, factor in patterns]


def manual_factors(definition: Definition) -> ManualFactors:
    priority, where = definition.rules.priority, "rules.priority"
    return ManualFactors(
        {address(url, f"{where}.urls"): value for url, value in priority.urls.items()},
        {host_named(host, f"{where}.hosts"): factor for host, factor in priority.hosts.items()},
        Patterns(tuple(priority.patterns), f"{where}.patterns"),
        tuple(priority.patterns.values()),
        {domain_named(name, WEIGHTS): factor for name, factor in definition.policy.domain_weights.items()},
    )


def edited(rules: HandRules, edit: RulesEdit) -> HandRules:
    """The rules after an edit, all in their one form. What is banned and lifted in one edit is lifted."""
    _check_patterns(edit)
    ban, lifted, priority, now = edit.ban, edit.unban, edit.priority, rules.priority
    new = HandRules(
        ban=Bans(
            urls=_list(address, "urls", rules.ban.urls, ban.urls, lifted.urls),
            hosts=_list(host_named, "hosts", rules.ban.hosts, ban.hosts, lifted.hosts),
            patterns=_list(_as_it_is, "patterns", rules.ban.patterns, ban.patterns, lifted.patterns),
        ),
        priority=Priorities(
            urls=_map(address, "urls", now.urls, priority.urls),
            hosts=_map(host_named, "hosts", now.hosts, priority.hosts),
            patterns=_map(_as_it_is, "patterns", now.patterns, priority.patterns),
        ),
    )
    try:
        return msgspec.convert(msgspec.to_builtins(new), HandRules)
    except msgspec.ValidationError as wrong:  # each edit was small enough, all of them together are not
        raise MalformedRequest(f"rules: {wrong}", field="rules") from None


def has_patterns(edit: RulesEdit) -> bool:
    """Of which a few can take long to check."""
    return bool(edit.ban.patterns or edit.priority.patterns)


def _check_patterns(edit: RulesEdit) -> None:
    """Said of the edit itself: a message about the rules as a whole would name another place."""
    for number, text in enumerate(edit.ban.patterns):
        check(text, f"ban.patterns[{number}]")
    for text in edit.priority.patterns:
        check(text, "priority.patterns")


def _as_it_is(text: str, field: str) -> str:  # noqa: ARG001 - called as the others are
    return text


def _list(
    formed: Callable[[str, str], str], kind: str, old: Iterable[str], more: Iterable[str], lifted: Iterable[str]
) -> tuple[str, ...]:
    added = {formed(one, f"ban.{kind}[{number}]"): None for number, one in enumerate(more)}
    gone = {formed(one, f"unban.{kind}[{number}]") for number, one in enumerate(lifted)}
    all_rules = {formed(one, f"rules.ban.{kind}"): None for one in old}
    return tuple(one for one in all_rules | added if one not in gone)


def _map(
    formed: Callable[[str, str], str], kind: str, old: Mapping[str, Number], more: Mapping[str, Number | None]
) -> dict[str, Number]:
    before = {formed(one, f"rules.priority.{kind}"): value for one, value in old.items()}
    edits = {formed(one, f"priority.{kind}"): value for one, value in more.items()}
    return {one: value for one, value in (before | edits).items() if value is not None}
