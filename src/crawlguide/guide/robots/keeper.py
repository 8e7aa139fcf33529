"""robots.txt files for the guide: kept in the store, in memory while they are used, read by whoever a crawl says.

A crawl that obeys has them fetched here, in the background; in the mode `crawler` its crawlers are sent for them first.
Either way a URL whose file is not known waits. Crawlers may tell of a robots.txt whatever the mode. Files belong to
origins and not to crawls, so all crawls share them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec
import numpy as np

from crawlguide.core import urls
from crawlguide.core.errors import CrawlGuideError
from crawlguide.core.outcomes import RELEASED, is_success
from crawlguide.core.telemetry import WARNING, happened
from crawlguide.core.types import Crawl, Seed
from crawlguide.guide.robots import sitemap_seeds
from crawlguide.guide.tell.intake import seeded
from crawlguide.policy.robots import Robots
from crawlguide.policy.robots.cache import CachedRobots, RobotsCache, RobotsRules, address, is_file, origin_of
from crawlguide.policy.robots.parser import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from crawlguide.core.clock import Clock
    from crawlguide.core.definition import Policy
    from crawlguide.core.messages import Fetch
    from crawlguide.core.protocols import Store
    from crawlguide.core.types import Ask, Batch, Report
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl
    from crawlguide.guide.robots.outgoing import Answer

HOUSE = Crawl("", "robots")  # the files of all crawls and tenants are kept as the state of a crawl that nobody sees
FIRST_OF_ALL = 10.0  # the priority of a robots.txt: above every page
WORKERS = 64
LARGE_BYTES = 16_384  # a file beyond this is read in a thread: it would keep others waiting
SCANNED_AT_ONCE = 500


class Fetcher(Protocol):
    """What gets a file for us: `Outgoing`."""

    async def get(self, url: str, agent: str, most_bytes: int) -> Answer: ...


@dataclass
class Want:
    """A file that crawls wait for, and in whose name it is fetched."""

    agent: str
    crawls: set[Crawl] = field(default_factory=set)


class Named(NamedTuple):
    """A sitemap, and the origin whose robots.txt names it to a crawl."""

    crawl: Crawl
    origin: str
    url: str
    nested: bool = False  # by a sitemap that a robots.txt names
    start: float | None = None  # it is leased already, for then


class Tried(NamedTuple):
    """One try at a file; without a status nothing came back."""

    origin: str
    status: int | None
    body: bytes
    at: float


class Keeper:
    """Knows robots.txt files, or sees to it that they become known."""

    def __init__(self, store: Store, clock: Clock, active: Mapping[Crawl, ActiveCrawl]) -> None:
        self._store = store
        self._clock = clock
        self._active = active  # the crawls that run here
        self.cache = RobotsCache()
        self.changed: list[str] = []  # origins whose file says something new: what it forbade is judged anew
        self._wanted: dict[str, Want] = {}
        self._errands: asyncio.Queue[str] = asyncio.Queue()
        self.sitemaps: asyncio.Queue[Named] = asyncio.Queue()  # that files name; a server reads them
        self._met: set[tuple[Crawl, str]] = set()

    # before URLs leave

    async def matter(self, rule: Robots) -> bool:
        """Whether files matter at all: some are known, or somebody goes for them."""
        self.cache.known |= not self.cache.known and await self._store.crawl_get(HOUSE) is not None
        return rule.waits or self.cache.known

    async def load_or_request(self, rule: Robots, ask: Ask, batch: Batch, urls: Sequence[str]) -> bool:
        """Bring the files of these URLs into memory, and have those fetched that are missing or due.

        Seeds that are sitemaps are leased to be read here. True: crawlers are now sent for some files, so that the
        queues have to be looked at again.
        """
        active = self._active.get(ask.crawl)
        if active is None:  # deleted meanwhile
            return False
        policy = active.definition.policy
        origins = filter(rule.counts, dict.fromkeys(map(origin_of, urls)))
        due = [origin for origin in origins if await self._load(policy, ask, origin)]
        if policy.sitemaps and self.cache.fetched:
            for one in await sitemap_seeds.taken(self._store, policy, ask, batch, self.cache):
                self.sitemaps.put_nowait(Named(ask.crawl, origin_of(one.url), one.url, start=one.start))
        if due and rule.mode == "crawler":
            return await self._send_for(active, ask, due)
        if self.cache.fetched:
            for origin in due:
                self._want(origin, rule.agent, ask.crawl)
        return False

    async def cache_for_looking(self, rule: Robots, ask: Ask, urls: Sequence[str]) -> RobotsCache:
        """What is known of the files of these URLs, apart from what asks use: no file is fetched or paced for it."""
        seen = RobotsCache(fetched=self.cache.fetched, known=self.cache.known)
        for origin in filter(rule.counts, dict.fromkeys(map(origin_of, urls))):
            copy = self.cache.get(origin) or await self._stored(origin)
            seen.put(origin, copy)
            if copy.stands(ask.at):
                file = self.cache.file(origin, rule.agent) or await _read(copy, rule.agent)
                seen.compiled(origin, rule.agent, file)
        return seen

    async def _load(self, policy: Policy, ask: Ask, origin: str) -> bool:
        """Bring what an origin's file says into memory; True if the file is to be fetched."""
        copy = self.cache.get(origin) or await self._known(origin)
        if self.cache.file(origin, policy.user_agent) is None and copy.stands(ask.at):
            await self._paced(policy, origin, copy, copy)  # this crawl meets the file for the first time
        if policy.sitemaps and self.cache.fetched:
            self._name_sitemaps(ask.crawl, origin, policy.user_agent)
        return copy.due() <= ask.at

    def _name_sitemaps(self, crawl: Crawl, origin: str, agent: str) -> None:
        """Once for a crawl, when its URLs of an origin leave for the first time."""
        file = self.cache.file(origin, agent)
        if file is not None and (crawl, origin) not in self._met:
            self._met.add((crawl, origin))
            for url in file.sitemaps:
                self.sitemaps.put_nowait(Named(crawl, origin, url))

    async def _send_for(self, active: ActiveCrawl, ask: Ask, origins: Sequence[str]) -> bool:
        """Queue the robots.txt of each origin, before everything else, unless it is on its way."""
        files = [address(origin) for origin in origins]
        ids = np.array([urls.identity(url) for url in files], np.uint64)
        records = await self._store.find(ask.crawl, ids)
        states = np.array(["new" if record is None else record.state for record in records])
        low = np.array([record is None or record.priority < FIRST_OF_ALL for record in records], np.bool_)
        await self._store.revive(ask.crawl, ids[states == "dropped"])
        await self._store.schedule(ask.crawl, ids[states == "done"], np.full(int((states == "done").sum()), ask.at))
        if low.any():  # nobody knew it, or it was found as a link like any other
            seeds = [Seed(url) for url, state in zip(files, states.tolist(), strict=True) if state == "new"]
            await self._store.discover(ask.crawl, seeded(seeds, active.intake), None, ask.at)
            first = np.full(int(low.sum()), FIRST_OF_ALL)
            await self._store.set_priority(ask.crawl, ids[low], first)
            await self._store.rank(ask.crawl, ids[low], first)
        return bool(low.any() or np.isin(states, ("done", "dropped")).any())

    async def _known(self, origin: str) -> CachedRobots:
        copy = self.cache.get(origin)
        if copy is None:
            copy = await self._stored(origin)
            self.cache.put(origin, copy)
        return copy

    async def _stored(self, origin: str) -> CachedRobots:
        if await self._store.crawl_get(HOUSE) is None:
            return CachedRobots()
        kept = await self._store.state_get(HOUSE, origin)
        return CachedRobots() if kept is None else msgspec.msgpack.decode(kept[0], type=CachedRobots)

    async def _compiled(self, origin: str, copy: CachedRobots, agent: str) -> RobotsRules:
        file = self.cache.file(origin, agent)
        if file is None:
            file = await _read(copy, agent)
            if self.cache.get(origin) is copy:  # and no newer one came meanwhile
                self.cache.compiled(origin, agent, file)
        return file

    # answers for robots.txt

    async def take_reported(self, active: ActiveCrawl, report: Report, fetches: Sequence[Fetch]) -> None:
        """Crawlers have fetched robots.txt files."""
        for item, url in zip(report.fetches.item.tolist(), report.fetches.url.tolist(), strict=True):
            fetch = fetches[item]
            if is_file(url) and fetch.error != RELEASED and (fetch.status or fetch.error):
                well = fetch.status is not None and is_success(fetch.status)
                status = fetch.status if fetch.error is None and not (well and fetch.text is None) else None
                want = Want(active.definition.policy.user_agent, {report.crawl})
                body = (fetch.text or "").encode("utf-8", "replace")
                tried = Tried(origin_of(url), status, body, report.at)
                await self._settled(tried, want)

    async def _settled(self, tried: Tried, want: Want) -> float:
        """One more try at a file is over: keep what came of it, and let those who waited go on.

        Returns for how long its host then rests.
        """
        origin, old = tried.origin, await self._known(tried.origin)
        copy = old.after(tried.status, tried.body, tried.at)
        self.cache.put(origin, copy)
        if await self._store.crawl_get(HOUSE) is None:
            await self._store.crawl_put(HOUSE, b"", self._clock.now())
        await self._store.state_put(HOUSE, origin, msgspec.msgpack.encode(copy), copy.version)
        if copy.failures:
            return 0.0
        if old.version and old.body != copy.body:
            self.changed.append(origin)
        delays_s = [0.0]
        for crawl in want.crawls:
            active = self._active.get(crawl)
            if active is not None and active.filter(Robots) is not None:
                delays_s.append(await self._paced(active.definition.policy, origin, old, copy))
                await self._store.withhold(crawl, [urls.queue(address(origin))], np.array([-np.inf]))
        return max(delays_s)

    async def _paced(self, policy: Policy, origin: str, old: CachedRobots, new: CachedRobots) -> float:
        """A pause that a file asks for is its host's own delay from now on, unless the crawl waits longer anyway."""
        pause_s = (await self._compiled(origin, new, policy.user_agent)).pause_s
        delay_s = max(pause_s or 0.0, policy.default_delay_s)
        if pause_s is not None or (old is not new and await self._paused(old, policy.user_agent)):
            await self._store.control(urls.queue(address(origin)), delay_s=delay_s)
        return delay_s

    async def _paused(self, copy: CachedRobots, agent: str) -> bool:
        """Whether a copy asked for a pause."""
        mentions_delay = b"delay" in copy.body.lower() or b"rate" in copy.body.lower()
        return mentions_delay and (await asyncio.to_thread(RobotsRules.read, copy.body, agent)).pause_s is not None

    # fetching them ourselves

    def _want(self, origin: str, agent: str, crawl: Crawl) -> None:
        if origin not in self._wanted:
            self._wanted[origin] = Want(agent)
            self._errands.put_nowait(origin)
        self._wanted[origin].crawls.add(crawl)

    @property
    def idle(self) -> bool:
        """Whether no file is wanted that nobody went for."""
        return self._errands.empty()

    async def run(self, outgoing: Fetcher) -> None:
        """Fetch what is wanted, for ever, many at once."""
        self.cache.fetched = True
        await asyncio.gather(*(self._worker(outgoing) for _ in range(WORKERS)))

    async def _worker(self, outgoing: Fetcher) -> None:
        while True:
            await self.errand(outgoing)

    async def errand(self, outgoing: Fetcher) -> None:
        """Fetch the file that was wanted first."""
        origin = await self._errands.get()
        began = self._clock.now()
        answer = await outgoing.get(address(origin), self._wanted[origin].agent, MAX_BYTES + 1)
        came = self._clock.now()
        first, want = (await self._known(origin)).version == 0, self._wanted.pop(origin)
        _say(origin, answer)
        try:
            if answer.address:
                await self._store.located(urls.queue(address(origin)), answer.address)
            delay_s = await self._settled(Tried(origin, answer.status, answer.body, began), want)
            if first:  # the pages of the host come a delay after its robots.txt, which it was asked for no later
                await self._store.control(urls.queue(address(origin)), block_until=came + delay_s)
            await self._store.commit(durable=False)
        except CrawlGuideError as problem:  # of the store, which says so itself; whoever asks wants the file again
            words = "robots.txt of {origin} was not kept: {problem}"
            happened("robots_unread", words, WARNING, origin=origin, problem=problem.message)

    # what they forbade before

    async def upkeep(self) -> None:
        """Files that changed: what the old one forbade and the new one permits waits again."""
        changed, self.changed = self.changed, []
        for origin in changed:
            for crawl, active in list(self._active.items()):
                if active.filter(Robots) is not None:
                    await self._revive(crawl, active, origin)

    async def _revive(self, crawl: Crawl, active: ActiveCrawl, origin: str) -> None:
        cursor, queue = None, urls.queue(address(origin))
        while True:
            records, cursor = await self._store.scan(crawl, "dropped", queue, SCANNED_AT_ONCE, cursor)
            refused = [record.url for record in records if record.reason == "robots"]
            free = [url for url in refused if active.intake.reason(url, queue) is None]
            if free:
                await self._store.revive(crawl, _ids(free), active.intake.max_depth)
            if cursor is None:
                return
            await asyncio.sleep(0)  # others are served between the pages


async def _read(copy: CachedRobots, agent: str) -> RobotsRules:
    if len(copy.body) > LARGE_BYTES:
        return await asyncio.to_thread(RobotsRules.read, copy.body, agent)
    return RobotsRules.read(copy.body, agent)


def _ids(texts: Iterable[str]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array([urls.identity(url) for url in texts], np.uint64)


def _say(origin: str, answer: Answer) -> None:
    if answer.status is None:
        words = "robots.txt of {origin} could not be read: {problem}; its URLs wait"
        happened("robots_unread", words, origin=origin, problem=answer.problem)
