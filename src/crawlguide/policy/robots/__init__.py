"""Only what the robots.txt of a URL's origin permits (RFC 9309). Where that is not known yet, URLs wait for it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import compress
from operator import not_
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.value_cache import ValueCache
from crawlguide.policy.robots import matcher, parser
from crawlguide.policy.robots import normal_form as forms
from crawlguide.policy.robots.cache import RobotsCache, RobotsRules, address, is_file, origin_of
from crawlguide.policy.robots.matcher import Matcher
from crawlguide.policy.scope import Scope, named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.definition import Definition
    from crawlguide.core.messages import Fetch
    from crawlguide.core.tables import F64, U64, Mask, Rows
    from crawlguide.core.types import Ask, Batch
    from crawlguide.policy import Services

NEVER_PASSED = -1.0
MOST_META, LONGEST_META = 100, 1_000  # texts that a page has for robots, and the characters of each; no page has more
SOON_S = 1.0  # a file that is on its way is looked for again after so long


def allowed(body: bytes, agent: str, url: str) -> bool:
    """May this agent fetch this URL, by the bytes of this robots.txt?"""
    group, _ = parser.parse(body, agent)
    return matcher.compiled(group.rules).permits([forms.path(url)])[0]


class RobotsFiles(Protocol):
    """Who has the robots.txt files, and sees to it that missing ones come: the guide's keeper."""

    def cache_of(self, tenant: str) -> RobotsCache:
        """The copies that count for crawls of a tenant."""
        ...

    async def changed_at(self, tenant: str) -> float:
        """When a file that counts for a tenant last said something new."""
        ...

    async def matter(self, rule: Robots) -> bool:
        """Whether files matter at all: some are known, or somebody goes for them."""
        ...

    async def load_or_request(self, rule: Robots, ask: Ask, batch: Batch, origins: Sequence[str]) -> bool:
        """Bring the files of these origins into memory; missing ones are fetched, or crawlers are sent for them.

        True: something came into the queues that goes before this batch.
        """
        ...

    async def cache_for_looking(self, rule: Robots, ask: Ask, origins: Sequence[str]) -> RobotsCache:
        """What is known of the files of these origins, apart from what asks use."""
        ...


class Unsettled(NamedTuple):
    """The rows of a batch that are to be judged, with their texts, which are read once."""

    batch: Batch
    rows: Rows
    urls: list[str]
    origins: dict[str, list[int]]  # of those whose robots.txt counts, the places in `urls`


@dataclass(frozen=True)
class Robots:
    """What may be fetched, by the copies in memory. `prepared` sees to it that they are there and compiled."""

    label: ClassVar = "robots.txt forbids it, or is not known"
    revivable: ClassVar = True
    reads: ClassVar = ("policy.robots", "policy.user_agent", "policy.robots_exceptions")

    mode: str
    agent: str
    cache: RobotsCache = field(default_factory=RobotsCache)
    exceptions: Scope | None = None  # domains whose robots.txt does not count
    passed: ValueCache = field(
        default_factory=ValueCache, compare=False
    )  # stamps that queues had when URLs were permitted
    hold_back_s: float = 0.0  # hosts whose file is not known do not stand in the way; one that comes lets them in
    files: RobotsFiles | None = field(default=None, compare=False)
    unsettled: Unsettled | None = field(default=None, compare=False)  # of the batch this one was prepared for
    name: str = "robots"
    refusal: str = "either"

    def connected(self, services: Services) -> Robots | None:
        """All crawls of a tenant share the files that are known; one that ignores them has no such filter."""
        if self.mode == "ignore":
            return None
        files = services.robots
        return self if files is None else replace(self, files=files, cache=files.cache_of(services.tenant))

    async def prepared(self, batch: Batch, ask: Ask) -> Robots | None:
        """The same filter for this batch, with the files it needs; None: gather again, something goes before it."""
        if self.files is None or not await self.files.matter(self):
            return self
        if ask.looking:
            origins = list(self._by_origin(_shaped(batch.url.tolist())))
            seen = await self.files.cache_for_looking(self, ask, origins)
            return replace(self, cache=seen, passed=ValueCache())
        found = self._unsettled(batch, ask)
        if await self.files.load_or_request(self, ask, batch, list(found.origins)):
            return None
        return replace(self, unsettled=found)

    @property
    def waits(self) -> bool:
        """For a file that is not known, since somebody goes for it. Otherwise whoever fetches has to read it."""
        return self.mode == "crawler" or self.cache.fetched

    def counts(self, origin: str) -> bool:
        """Whether the robots.txt of an origin has a say."""
        if not origin:
            return False
        return self.exceptions is None or not self.exceptions.covers(addresses.queue(address(origin)))

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        keep: Mask = self.wait(batch, ask) == 0.0
        return keep

    def _unsettled(self, batch: Batch, ask: Ask) -> Unsettled:
        """What there is to judge in a batch."""
        if self.unsettled is not None and self.unsettled.batch is batch:
            return self.unsettled
        rows = np.flatnonzero(~self.settled(batch, ask))
        urls = _shaped(batch.url[rows].tolist()) if len(rows) else []
        return Unsettled(batch, rows, urls, self._by_origin(urls))

    def settled(self, batch: Batch, ask: Ask) -> Mask:
        """What was permitted before, by files that have not changed since and are not due. Reads no text."""
        if not self.waits and not self.cache.known:
            return np.ones(len(batch), np.bool_)
        passed, unknown = self.passed.get(batch.id)
        passed[unknown] = NEVER_PASSED
        stamps, due = self.cache.stands.of(batch.hosts.name.tolist())
        stamps[due <= ask.at] = np.nan
        settled: Mask = passed == stamps[batch.host]
        return settled

    def wait(self, batch: Batch, ask: Ask) -> F64:
        """0 for what may be fetched, NaN for what never may, else how long to wait until more is known."""
        found, waits = self._unsettled(batch, ask), np.zeros(len(batch))
        if len(found.rows):
            waits[found.rows] = self._judged(found.urls, found.origins, batch.id[found.rows], ask.at)
        return waits

    def _judged(self, urls: list[str], origins: dict[str, list[int]], ids: U64, at: float) -> list[float]:
        waits, alike = [0.0] * len(urls), defaultdict[Matcher, list[int]](list)
        for origin, rows in origins.items():
            copy, file = self.cache.get(origin), self.cache.file(origin, self.agent)
            if copy is not None and file is not None and copy.stands(at):
                alike[file.matcher] += rows
            elif self.waits:
                later = copy.due() - at if copy is not None and copy.failures else 0.0
                for row in rows:
                    waits[row] = 0.0 if is_file(urls[row]) else max(later, SOON_S)
        free, refused = _divided(alike, urls)
        for row in refused:
            waits[row] = 0.0 if is_file(urls[row]) else np.nan
        if free:
            self._remember(ids[free], [addresses.queue(urls[row]) for row in free])
        return waits

    def _remember(self, permitted: U64, queues: Sequence[str]) -> None:
        """What may go now may go until the file is due again or another one comes."""
        stamps, _ = self.cache.stands.of(queues)
        self.passed.put(permitted, np.where(stamps > 0, stamps, NEVER_PASSED))

    def judge_links(
        self, queues: Sequence[str], urls: Sequence[str], pages: Sequence[str], ids: U64
    ) -> list[str | None]:
        """Why each URL is dropped when it is found, by the files that are known at that moment; None: it is not."""
        why: list[str | None] = [None] * len(urls)
        alike = defaultdict[Matcher, list[int]](list)
        for origin, rows in self._by_origin(urls).items():
            file = self.cache.file(origin, self.agent)
            if file is not None:
                alike[file.matcher] += rows
        free, refused = _divided(alike, urls)
        for row in refused:
            why[row] = None if is_file(urls[row]) else "its robots.txt forbids it"
        if free:
            self._remember(ids[free], [queues[row] for row in free])
        return why

    def follows(self, fetch: Fetch, url: str) -> bool:
        """Whether the links of a page may be followed: neither it nor the robots.txt of its origin says no."""
        if not _meta(fetch).isdisjoint(("nofollow", "none")):
            return False
        file = self.cache.file(origin_of(url), self.agent)
        return file is None or file.nofollow.permits([forms.path_of_canonical(url)])[0]

    def keeps(self, fetch: Fetch, url: str) -> bool:
        """Whether a page may be kept; if not it is worth nothing, unless the crawler itself says what it was worth."""
        if fetch.relevance is not None:
            return True
        if not _meta(fetch).isdisjoint(("noindex", "none")):
            return False
        file = self.cache.file(origin_of(url), self.agent)
        return file is None or file.noindex.permits([forms.path_of_canonical(url)])[0]

    def degraded(self, batch: Batch, ask: Ask) -> str | None:
        """Which word says that URLs are given out for which no file, or an old one, has spoken."""
        if self.cache.known and self.settled(batch, ask).all():
            return None
        cache = [self.cache.get(origin) for origin in self._by_origin(_shaped(batch.url.tolist()))]
        if any(copy is None or not copy.stands(ask.at) for copy in cache):
            return None if self.waits else "robots_unchecked"  # then they are robots.txt files themselves
        return "stale_robots" if any(copy is not None and copy.failures for copy in cache) else None

    def why(self, batch: Batch, ask: Ask) -> str:
        (url,), wait = _shaped(batch.url.tolist()[:1]), float(self.wait(batch, ask)[0])
        if not url:
            return "it is no address in the web"
        if not self.counts(origin_of(url)):
            return "policy.robots_exceptions names its domain"
        file = self.cache.file(origin_of(url), self.agent)
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
    found = Scope(exceptions) if exceptions else None
    return Robots(policy.robots, policy.user_agent, exceptions=found, hold_back_s=policy.horizon_s)


def _divided(alike: Mapping[Matcher, list[int]], urls: Sequence[str]) -> tuple[list[int], list[int]]:
    """The rows that their rules permit, and those that they forbid; hosts with the same rules are judged together."""
    free, refused = list[int](), list[int]()
    for rules, rows in alike.items():
        permitted = rules.permits([forms.path_of_canonical(urls[row]) for row in rows])
        free += compress(rows, permitted)
        refused += compress(rows, map(not_, permitted))
    return free, refused


def _shaped(urls: Sequence[str]) -> list[str]:
    return [addresses.shaped(url) for url in urls]


def _meta(fetch: Fetch) -> set[str]:
    """What a page says to robots: "noindex, nofollow" in its head, or in the headers of its answer."""
    texts = (fetch.robots_meta or ())[:MOST_META]
    return {word.strip().lower() for text in texts for word in text[:LONGEST_META].split(",")}


__all__ = ["Robots", "RobotsCache", "RobotsRules", "allowed", "build"]
