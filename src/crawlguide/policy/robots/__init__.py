"""Only what the robots.txt of a URL's origin permits (RFC 9309). Where that is not known yet, URLs wait for it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.value_cache import ValueCache
from crawlguide.policy.robots import matcher, parser
from crawlguide.policy.robots import normal_form as forms
from crawlguide.policy.robots.cache import Copies, File, address, is_file, origin_of
from crawlguide.policy.scope import Scope, named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.definition import Definition
    from crawlguide.core.tables import F64, U64, Mask, Rows
    from crawlguide.core.types import Ask, Batch

NEVER_PASSED = -1.0
SOON_S = 1.0  # a file that is on its way is looked for again after so long


def allowed(body: bytes, agent: str, url: str) -> bool:
    """May this agent fetch this URL, by the bytes of this robots.txt?"""
    group, _ = parser.parse(body, agent)
    return matcher.compiled(group.rules).permits([forms.path(url)])[0]


class Look(NamedTuple):
    """The rows of a batch that are to be judged, with their texts, which are read once."""

    batch: Batch
    at: float
    rest: Rows
    urls: list[str]


@dataclass(frozen=True)
class Robots:
    """What may be fetched, by the copies in memory. Whoever asks has seen to it that they are there and compiled."""

    mode: str
    agent: str
    copies: Copies = field(default_factory=Copies)
    exceptions: Scope | None = None  # domains whose robots.txt does not count
    passed: ValueCache = field(
        default_factory=ValueCache, compare=False
    )  # stamps that queues had when URLs were permitted
    latest: list[Look] = field(default_factory=list, compare=False)  # at most one
    name: str = "robots"
    refusal: str = "either"

    @property
    def waits(self) -> bool:
        """For a file that is not known, since somebody goes for it. Otherwise whoever fetches has to read it."""
        return self.mode == "crawler" or self.copies.fetched

    def counts(self, origin: str) -> bool:
        """Whether the robots.txt of an origin has a say."""
        return self.exceptions is None or not self.exceptions.covers(addresses.queue(address(origin)))

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        keep: Mask = self.wait(batch, ask) == 0.0
        return keep

    def look(self, batch: Batch, ask: Ask) -> Look:
        """What there is to judge in a batch. Whoever comes next with the same batch is given the same."""
        if not self.latest or self.latest[0].batch is not batch or self.latest[0].at != ask.at:
            rest = np.flatnonzero(~self.settled(batch, ask))
            self.latest[:] = [Look(batch, ask.at, rest, batch.url[rest].tolist() if len(rest) else [])]
        return self.latest[0]

    def settled(self, batch: Batch, ask: Ask) -> Mask:
        """What was permitted before, by files that have not changed since and are not due. Reads no text."""
        if not self.waits and not self.copies.known:
            return np.ones(len(batch), np.bool_)
        passed, unknown = self.passed.get(batch.id)
        passed[unknown] = NEVER_PASSED
        stamps, due = self.copies.stands.of(batch.hosts.name.tolist())
        stamps[due <= ask.at] = np.nan
        settled: Mask = passed == stamps[batch.host]
        return settled

    def wait(self, batch: Batch, ask: Ask) -> F64:
        """0 for what may be fetched, NaN for what never may, else how long to wait until more is known."""
        look, waits = self.look(batch, ask), np.zeros(len(batch))
        if len(look.rest):
            waits[look.rest] = self._judged(look.urls, batch.id[look.rest], ask.at)
        return waits

    def _judged(self, found: Sequence[str], ids: U64, at: float) -> list[float]:
        waits, free, queues = [0.0] * len(found), list[int](), list[str]()
        for origin, rows in self._by_origin(found).items():
            copy, file = self.copies.get(origin), self.copies.file(origin, self.agent)
            if copy is not None and file is not None and copy.stands(at):
                permitted = file.matcher.permits([forms.path_of_canonical(found[row]) for row in rows])
                for row, may in zip(rows, permitted, strict=True):
                    waits[row] = 0.0 if may or is_file(found[row]) else np.nan
                may_go = [row for row, may in zip(rows, permitted, strict=True) if may]
                free += may_go
                queues += [addresses.queue(address(origin))] * len(may_go)
            elif self.waits:
                later = copy.due() - at if copy is not None and copy.failures else 0.0
                for row in rows:
                    waits[row] = 0.0 if is_file(found[row]) else max(later, SOON_S)
        if free:
            self._remember(ids[free], queues)
        return waits

    def _remember(self, permitted: U64, queues: Sequence[str]) -> None:
        """What may go now may go until the file is due again or another one comes."""
        stamps, _ = self.copies.stands.of(queues)
        self.passed.put(permitted, np.where(stamps > 0, stamps, NEVER_PASSED))

    def sight(self, queues: Sequence[str], urls: Sequence[str], pages: Sequence[str], ids: U64) -> list[str | None]:
        """Why each URL is dropped when it is found, by the files that are known at that moment; None: it is not."""
        why: list[str | None] = [None] * len(urls)
        passed: list[int] = []
        for origin, rows in self._by_origin(urls).items():
            file = self.copies.file(origin, self.agent)
            if file is not None:
                plain = not file.matcher.literal.texts  # it forbids nothing
                permitted = plain or file.matcher.permits([forms.path_of_canonical(urls[row]) for row in rows])
                free = rows if permitted is True else [row for row, may in zip(rows, permitted, strict=True) if may]
                passed += free
                for row in set(rows).difference(free):
                    why[row] = None if is_file(urls[row]) else "its robots.txt forbids it"
        if passed:
            self._remember(ids[passed], [queues[row] for row in passed])
        return why

    def follows(self, url: str) -> bool:
        """Whether links on the page at a canonical URL may be followed, by robots.txt."""
        file = self.copies.file(origin_of(url), self.agent)
        return file is None or file.nofollow.permits([forms.path_of_canonical(url)])[0]

    def keeps(self, url: str) -> bool:
        """Whether the page at a canonical URL may be kept, by robots.txt."""
        file = self.copies.file(origin_of(url), self.agent)
        return file is None or file.noindex.permits([forms.path_of_canonical(url)])[0]

    def degraded(self, batch: Batch, ask: Ask) -> str | None:
        """Which word says that URLs are given out for which no file, or an old one, has spoken."""
        if self.copies.known and self.settled(batch, ask).all():
            return None
        copies = [self.copies.get(origin) for origin in self._by_origin(batch.url.tolist())]
        if any(copy is None or not copy.stands(ask.at) for copy in copies):
            return None if self.waits else "robots_unchecked"  # then they are robots.txt files themselves
        return "stale_robots" if any(copy is not None and copy.failures for copy in copies) else None

    def why(self, batch: Batch, ask: Ask) -> str:
        url, wait = batch.url.tolist()[0], float(self.wait(batch, ask)[0])
        if not self.counts(origin_of(url)):
            return "policy.robots_exceptions names its domain"
        file = self.copies.file(origin_of(url), self.agent)
        if wait > 0:
            return f"its robots.txt could not be read yet; it is tried again in {wait:.0f} s"
        return "its robots.txt is not known" if file is None else file.matcher.why(forms.path_of_canonical(url))

    def _by_origin(self, found: Sequence[str]) -> dict[str, list[int]]:
        """The rows of each origin whose robots.txt counts."""
        rows = defaultdict(list)
        for row, url in enumerate(found):
            rows[origin_of(url)].append(row)
        return {origin: mine for origin, mine in rows.items() if self.counts(origin)}


def build(definition: Definition) -> Robots:
    policy = definition.policy
    exceptions = named(policy.robots_exceptions, "policy.robots_exceptions")
    return Robots(policy.robots, policy.user_agent, exceptions=Scope(exceptions) if exceptions else None)


__all__ = ["Copies", "File", "Robots", "allowed", "build"]
