"""robots.txt files for the guide: kept in the store, in memory while they are used, read by whoever a crawl says.

A crawl that obeys has them fetched here, in the background; in the mode `crawler` its crawlers are sent for them first.
Either way a URL whose file is not known waits. Crawlers may tell of a robots.txt whatever the mode. Files belong to
origins and not to crawls, so crawls share them (`copies.py` says which).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec
import numpy as np

from crawlguide.core import urls
from crawlguide.core.errors import CrawlGuideError, UrlError
from crawlguide.core.outcomes import RELEASED, is_success
from crawlguide.core.telemetry import INFO, SILENT, WARNING, happened
from crawlguide.core.turns import in_turns, let_others
from crawlguide.core.types import Crawl, Seed
from crawlguide.guide.containment import contained
from crawlguide.guide.robots import sitemap_seeds
from crawlguide.guide.robots.copies import GUIDE, Copies
from crawlguide.guide.robots.errands import Errands
from crawlguide.guide.tell.intake import seeded
from crawlguide.policy.robots import Robots
from crawlguide.policy.robots.cache import (
    CachedRobots,
    RobotsCache,
    RobotsRules,
    address,
    is_file,
    origin_of,
    paused_s,
)
from crawlguide.policy.robots.parser import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from crawlguide.core.clock import Clock
    from crawlguide.core.messages import Fetch
    from crawlguide.core.protocols import Store
    from crawlguide.core.tables import Mask
    from crawlguide.core.telemetry import Telemetry
    from crawlguide.core.types import Ask, Batch, Report
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl
    from crawlguide.guide.robots.outgoing import Answer

FIRST_OF_ALL = 10.0  # the priority of a robots.txt: above every page
AT_ONCE, AT_ONCE_OF_DOMAIN = 256, 8
SITEMAPS_AT_ONCE, SITEMAPS_AT_ONCE_OF_DOMAIN = 8, 1
MOST_SITEMAPS = 1_000  # that one robots.txt may name
LARGE_BYTES = 16_384  # a file beyond this is read in a thread: it would keep others waiting
LOADED_AT_ONCE, SCANNED_AT_ONCE = 200, 500
MOST_CHANGED, CHANGED_AT_ONCE = 100_000, 100  # files that wait to be looked at again, and at one upkeep


class Fetcher(Protocol):
    """What gets a file for us: `Outgoing`."""

    async def get(self, url: str, agent: str, most_bytes: int) -> Answer: ...


@dataclass
class Want:
    """A file that crawls wait for, and in whose name it is fetched."""

    agent: str
    crawls: set[Crawl] = field(default_factory=set)
    begun: bool = False


class Wanted(NamedTuple):
    """A crawl wants a file."""

    crawl: Crawl
    origin: str

    @property
    def domain(self) -> str:
        return urls.domain_of(urls.queue(address(self.origin)))


class Named(NamedTuple):
    """A sitemap, and the origin whose robots.txt names it to a crawl."""

    crawl: Crawl
    origin: str
    url: str
    nested: bool = False  # by a sitemap that a robots.txt names
    start: float | None = None  # it is leased already, for then
    faults: int = 0  # of ours, when it was to be read before
    large: bool = False  # so it turned out; such ones are read one at a time

    @property
    def domain(self) -> str:
        return urls.domain_of(urls.queue(self.url))


class Tried(NamedTuple):
    """One try at a file; without a status nothing came back."""

    origin: str
    status: int | None
    body: bytes
    at: float
    teller: str = GUIDE  # the tenant whose crawler tried
    problem: str = ""  # in words, where a crawler tells of it


class Keeper:
    """Knows robots.txt files, or sees to it that they become known."""

    def __init__(self, store: Store, clock: Clock, active: Mapping[Crawl, ActiveCrawl]) -> None:
        self._store = store
        self._clock = clock
        self._active = active  # the crawls that run here
        self.copies = Copies(store, clock)
        self.telemetry: Telemetry = SILENT
        self._warned = False  # that a file could not be read
        self._changed: dict[tuple[str, str], None] = {}  # tellers and origins whose file says something new
        self._wanted: dict[str, Want] = {}
        self._errands = Errands[Wanted](clock, AT_ONCE, AT_ONCE_OF_DOMAIN)
        self.sitemaps = Errands[Named](clock, SITEMAPS_AT_ONCE, SITEMAPS_AT_ONCE_OF_DOMAIN)  # a server reads them

    @property
    def cache(self) -> RobotsCache:
        """Copies of files that count for everybody."""
        return self.copies.of(GUIDE)

    def cache_of(self, tenant: str) -> RobotsCache:
        return self.copies.of(tenant)

    def forget(self, crawl: Crawl) -> None:
        """A crawl was deleted: nobody goes anywhere for it any more."""
        self._errands.forget(crawl)
        self.sitemaps.forget(crawl)
        for origin, want in list(self._wanted.items()):
            want.crawls.discard(crawl)
            if not want.crawls and not want.begun:
                del self._wanted[origin]

    # before URLs leave

    async def matter(self, rule: Robots) -> bool:
        """Whether files matter at all: some are known, or somebody goes for them."""
        rule.cache.known |= not rule.cache.known and await self.copies.exist()
        return rule.waits or rule.cache.known

    async def load_or_request(self, rule: Robots, ask: Ask, batch: Batch, origins: Sequence[str]) -> bool:
        """Bring the files of these origins into memory, and have those fetched that are missing or due.

        Seeds that are sitemaps are leased to be read here. True: crawlers are now sent for some files, so that the
        queues have to be looked at again.
        """
        active = self._active.get(ask.crawl)
        if active is None:  # deleted meanwhile
            return False
        policy = active.definition.policy
        due = await self._load_all(active, ask, origins)
        if policy.sitemaps and rule.cache.fetched:
            for one in await sitemap_seeds.taken(self._store, policy, ask, batch, rule.cache):
                self._name(Named(ask.crawl, origin_of(one.url), one.url, start=one.start))
        if due and rule.mode == "crawler":
            return await self._send_for(active, ask, due)
        if rule.cache.fetched:
            async for some in in_turns(due, LOADED_AT_ONCE):
                for origin in some:
                    self._want(origin, rule.agent, ask.crawl)
        return False

    async def cache_for_looking(self, rule: Robots, ask: Ask, origins: Sequence[str]) -> RobotsCache:
        """What is known of the files of these origins, apart from what asks use: no file is fetched or paced for it."""
        cache = rule.cache
        seen = RobotsCache(fetched=cache.fetched, known=cache.known)
        for origin in origins:
            copy = cache.get(origin) or await self.copies.stored(ask.crawl.tenant, origin)
            seen.put(origin, copy)
            if copy.stands(ask.at):
                file = cache.file(origin, rule.agent) or await _read(copy, rule.agent)
                seen.compiled(origin, rule.agent, file)
        return seen

    async def _load_all(self, active: ActiveCrawl, ask: Ask, origins: Sequence[str]) -> list[str]:
        """The origins whose files are to be fetched. Most are in memory and were met before: nothing is to be done."""
        due, cache, agent = list[str](), self.copies.of(ask.crawl.tenant), active.definition.policy.user_agent
        async for some in in_turns(origins, LOADED_AT_ONCE):
            others = [one for one in some if not (cache.ready(one, agent, ask.at) and active.met.has(one, ask.at))]
            due += [origin for origin in others if await self._load(active, ask, origin)]
        return due

    async def _load(self, active: ActiveCrawl, ask: Ask, origin: str) -> bool:
        """Bring what an origin's file says into memory; True if the file is to be fetched."""
        copy = await self.copies.known(ask.crawl.tenant, origin)
        if copy.stands(ask.at):
            await self._meet(active, ask, origin, copy)
        return copy.due() <= ask.at

    async def _meet(self, active: ActiveCrawl, ask: Ask, origin: str, copy: CachedRobots) -> None:
        """When URLs of an origin leave for the first time its file's pause is wished for, and its sitemaps are named.

        That happens again twice a day: meanwhile the file may name others, and its host may have been forgotten.
        """
        policy, cache = active.definition.policy, self.copies.of(ask.crawl.tenant)
        is_compiled = cache.file(origin, policy.user_agent) is not None
        file = await self._compiled(ask.crawl.tenant, origin, copy, policy.user_agent)
        is_new = active.met.add(origin, ask.at)
        if (is_new or not is_compiled) and (pause_s := paused_s(copy, file)):
            await self._store.hold(urls.queue(address(origin)), delay_s=pause_s)
        if is_new and policy.sitemaps and cache.fetched:
            for url in file.sitemaps[:MOST_SITEMAPS]:
                self._name(Named(ask.crawl, origin, url))

    def _name(self, named: Named) -> None:
        """A sitemap is to be read, unless its URL is none. What there is no room for is named again tomorrow."""
        try:
            place = named._replace(url=urls.canonical(named.url, address(named.origin)))
        except UrlError:
            return
        if not self.sitemaps.put_nowait(place):
            self.telemetry.count("errands", kind="sitemap", outcome="left")

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

    async def _compiled(self, tenant: str, origin: str, copy: CachedRobots, agent: str) -> RobotsRules:
        cache = self.copies.of(tenant)
        file = cache.file(origin, agent)
        if file is None:
            file = await _read(copy, agent)
            if cache.get(origin) is copy:  # and no newer one came meanwhile
                cache.compiled(origin, agent, file)
        return file

    # answers for robots.txt

    async def take_reported(self, report: Report, fetches: Sequence[Fetch], counts: Mask) -> None:
        """Crawlers have fetched robots.txt files; one that nobody was sent for may not count."""
        told = report.fetches.take(counts)
        for item, url in zip(told.item.tolist(), told.url.tolist(), strict=True):
            fetch = fetches[item]
            if is_file(url) and fetch.error != RELEASED and (fetch.status or fetch.error):
                well = fetch.status is not None and is_success(fetch.status)
                status = fetch.status if fetch.error is None and not (well and fetch.text is None) else None
                body = (fetch.text or "").encode("utf-8", "replace")
                problem = fetch.error or (
                    "the crawler reported it without `text`" if well else f"status {fetch.status}"
                )
                tried = Tried(origin_of(url), status, body, report.at, report.crawl.tenant, problem)
                await self._settled(tried, [report.crawl])
                await let_others()  # others are served between the files

    async def _settled(self, tried: Tried, crawls: Iterable[Crawl]) -> float:
        """One more try at a file is over: keep what came of it, and let those who waited go on.

        Returns for how long its host then rests.
        """
        origin, old = tried.origin, await self.copies.known(tried.teller, tried.origin)
        copy = old.after(tried.status, tried.body, tried.at)
        if copy is old:
            return 0.0
        await self.copies.keep(origin, msgspec.structs.replace(copy, told_by=tried.teller))
        if copy.failures:
            if tried.problem:
                self._say_unread(origin, tried.problem)
            return 0.0
        if old.version and old.body != copy.body:
            await self.copies.note_change(tried.teller)
            if len(self._changed) < MOST_CHANGED:
                self._changed[tried.teller, origin] = None
        delays_s = [await self._let_go(crawl, origin) for crawl in crawls]
        await self._pace(origin, tried.at)
        return max(delays_s, default=0.0)

    def _say_unread(self, origin: str, problem: str) -> None:
        """The first one warns: perhaps nothing can be reached, and everything waits for ever."""
        words = "robots.txt of {origin} could not be read: {problem}; its URLs wait, and it is tried again"
        happened("robots_unread", words, INFO if self._warned else WARNING, origin=origin, problem=problem)
        self._warned = True

    async def _let_go(self, crawl: Crawl, origin: str) -> float:
        """A crawl that waited for a file goes on; returns how long it rests between two fetches of the host."""
        active = self._active.get(crawl)
        if active is None and await self._store.crawl_get(crawl) is not None:  # it is unloaded, and waits all the same
            await self._store.withhold(crawl, [urls.queue(address(origin))], np.array([-np.inf]))
        if active is None or active.filter(Robots) is None:
            return 0.0
        policy, copy = active.definition.policy, await self.copies.known(crawl.tenant, origin)
        file = await self._compiled(crawl.tenant, origin, copy, policy.user_agent)
        await self._store.withhold(crawl, [urls.queue(address(origin))], np.array([-np.inf]))
        return max(paused_s(copy, file), policy.default_delay_s)

    async def _pace(self, origin: str, at: float) -> None:
        """The longest pause that valid files ask of anybody here is the delay of their host, beside those of crawls.

        A pause that nobody asks for any more ends with that. Whoever else meets the file wishes for theirs then.
        """
        queue = urls.queue(address(origin))
        await self._store.control(queue, delay_s=self.copies.pause_s(queue, at))

    # fetching them ourselves

    def _want(self, origin: str, agent: str, crawl: Crawl) -> None:
        """What there is no room for is wanted again when somebody asks again."""
        want = self._wanted.get(origin)
        if want is not None and (want.begun or crawl in want.crawls):
            want.crawls.add(crawl)
        elif self._errands.put_nowait(Wanted(crawl, origin)):
            self._wanted.setdefault(origin, Want(agent)).crawls.add(crawl)
        else:
            self.telemetry.count("errands", kind="robots", outcome="left")

    @property
    def idle(self) -> bool:
        """Whether no file is wanted that nobody went for."""
        return all(want.begun for want in self._wanted.values())

    async def run(self, outgoing: Fetcher) -> None:
        """Fetch what is wanted, for ever, many at once."""
        self.copies.fetch_missing()
        await self._errands.run(lambda wanted: self._go(wanted, outgoing))

    async def errand(self, outgoing: Fetcher) -> None:
        """Fetch the file whose turn it is."""
        wanted = await self._errands.get()
        try:
            await self._go(wanted, outgoing)
        finally:
            self._errands.done(wanted)

    async def _go(self, wanted: Wanted, outgoing: Fetcher) -> None:
        """Whatever goes wrong concerns this file alone; it is tried again, later each time."""
        want = self._wanted.get(wanted.origin)
        if want is None or want.begun:  # another crawl wanted it, too, and had its turn first
            return
        want.begun, outcome = True, "fault"
        try:
            outcome = await self._fetch(wanted.origin, want, outgoing)
        except CrawlGuideError as problem:  # of the store, which says so itself; whoever asks wants the file again
            words = "robots.txt of {origin} was not kept: {problem}"
            happened("robots_unread", words, WARNING, origin=wanted.origin, problem=problem.message)
        except Exception as fault:  # noqa: BLE001 - nothing that one host says may end the errands of others
            self._failed(wanted.origin, fault)
        finally:
            self._wanted.pop(wanted.origin, None)
            self.telemetry.count("errands", kind="robots", outcome=outcome)

    async def _fetch(self, origin: str, want: Want, outgoing: Fetcher) -> str:
        began, queue = self._clock.now(), urls.queue(address(origin))
        answer = await outgoing.get(address(origin), want.agent, MAX_BYTES + 1)
        came = self._clock.now()
        is_first = (await self.copies.known(GUIDE, origin)).version == 0
        if answer.status is None:
            self._say_unread(origin, answer.problem)
        if answer.address:
            await self._store.located(queue, answer.address)
        delay_s = await self._settled(Tried(origin, answer.status, answer.body, began), list(want.crawls))
        if is_first:  # the pages of the host come a delay after its robots.txt, which it was asked for no later
            await self._store.hold(queue, until=came + delay_s)
        await self._store.commit(durable=False)
        return "failed" if answer.status is None else "done"

    def _failed(self, origin: str, fault: Exception) -> None:
        words = "robots.txt of {origin} was not read, by a fault of the guide: {problem}"
        happened("errand_failed", words, WARNING, origin=origin, problem=repr(fault)[:200])
        copy = self.cache.get(origin) or CachedRobots()
        self.copies.spread(origin, copy.after(None, b"", self._clock.now()))

    # what they forbade before

    async def changed_at(self, tenant: str) -> float:
        """When a file that counts for a tenant last said something new."""
        return max([await self.copies.changed_at(teller) for teller in (GUIDE, tenant)])

    async def upkeep(self) -> None:
        """Old files are forgotten; what one forbade and a new one permits waits again."""
        await self.copies.upkeep(self._clock.now())
        for teller, origin in list(self._changed)[:CHANGED_AT_ONCE]:
            del self._changed[teller, origin]
            for crawl, active in list(self._active.items()):
                if active.filter(Robots) is not None and teller in (GUIDE, crawl.tenant):
                    with contained(f"{address(origin)} in crawl {crawl.name}"):
                        await self._revive(crawl, active, origin)

    async def _revive(self, crawl: Crawl, active: ActiveCrawl, origin: str) -> None:
        cursor, queue = None, urls.queue(address(origin))
        while self._active.get(crawl) is active:  # neither deleted nor defined anew meanwhile
            records, cursor = await self._store.scan(crawl, "dropped", queue, SCANNED_AT_ONCE, cursor)
            refused = [record.url for record in records if record.reason == "robots"]
            await active.intake.search_ahead(refused.copy)
            free = [url for url in refused if active.intake.reason(url, queue) is None]
            if free:
                await self._store.revive(crawl, _ids(free), active.intake.max_depth)
            if cursor is None:
                return
            await let_others()  # others are served between the pages


async def _read(copy: CachedRobots, agent: str) -> RobotsRules:
    if len(copy.body) > LARGE_BYTES:
        return await asyncio.to_thread(RobotsRules.read, copy.body, agent)
    return RobotsRules.read(copy.body, agent)


def _ids(texts: Iterable[str]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array([urls.identity(url) for url in texts], np.uint64)
