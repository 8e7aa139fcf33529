"""robots.txt files as they were last fetched: in memory while they are used, in the store for a week after that.

A file that the guide fetched itself counts for everybody. One that a crawler tells of counts for its own tenant alone:
to others it may be a lie that forbids, or permits, everything. Of the two the newer counts.
"""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import TYPE_CHECKING

import msgspec

from crawlguide.core.clock import milliseconds
from crawlguide.core.types import Crawl
from crawlguide.policy.robots.cache import MOST_BYTES, STALE_FOR_S, CachedRobots, RobotsCache, newer

if TYPE_CHECKING:
    from crawlguide.core.clock import Clock
    from crawlguide.core.protocols import Store

GUIDE = ""  # who fetched what counts for everybody
NOBODY = ""  # the tenant of crawls that nobody sees: files are kept as their answers, each until its end
HOUSE = Crawl(NOBODY, "robots.txt")
HOUSE_BEFORE = Crawl(NOBODY, "robots")  # where they had no end; those that may still count are read from there
BEFORE_COUNTS = "the house before counts"
CHANGED = "changed"  # its version is when
DAY_S = 86_400.0
KEPT_S = 7 * DAY_S  # a file that is in use is fetched again within hours
MOST_BYTES_A_DAY = 4 * 1024**3  # that are stored for one tenant; what is beyond is in memory alone, and fetched again


class Copies:
    """The newest copy of each file, for each tenant."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._caches: dict[str, RobotsCache] = {GUIDE: RobotsCache()}
        self._day, self._written = 0, Counter[str]()

    def of(self, tenant: str) -> RobotsCache:
        """Copies in memory that count for a tenant; like all others it knows whether the guide fetches missing ones."""
        if tenant not in self._caches:
            everybody = self._caches[GUIDE]
            self._caches[tenant] = RobotsCache(fetched=everybody.fetched, known=everybody.known)
        return self._caches[tenant]

    def fetch_missing(self) -> None:
        """From now on the guide fetches missing files."""
        for cache in self._caches.values():
            cache.fetched = True

    async def exist(self) -> bool:
        """Whether any file is known."""
        return bool(await self._store.crawl_list(NOBODY))

    async def known(self, tenant: str, origin: str) -> CachedRobots:
        """The copy that counts for a tenant, from now on in memory."""
        copy = self.of(tenant).get(origin)
        if copy is None:
            copy = await self.stored(tenant, origin)
            self._remember(tenant, origin, copy)
        return copy

    async def stored(self, tenant: str, origin: str) -> CachedRobots:
        """The copy that counts for a tenant, wherever it is; memory stays as it is."""
        everybody = self.of(GUIDE).get(origin) or await self._read(GUIDE, origin)
        return everybody if tenant == GUIDE else newer(everybody, await self._read(tenant, origin))

    async def keep(self, origin: str, copy: CachedRobots) -> None:
        """There is a new copy, here and in the store."""
        self.spread(origin, copy)
        at, stored = self._clock.now(), msgspec.msgpack.encode(copy)
        if self._may_write(copy.told_by, len(stored), at):
            await self._begin(house_of(copy.told_by), at)
            await self._store.answer_put(house_of(copy.told_by), origin, stored, at + KEPT_S)

    def spread(self, origin: str, copy: CachedRobots) -> None:
        """In memory it counts from now on for whoever told of it, or for everybody."""
        self._remember(copy.told_by, origin, copy)
        for tenant, cache in list(self._caches.items()) if copy.told_by == GUIDE else ():
            if tenant != GUIDE and origin in cache:
                self._remember(tenant, origin, newer(copy, cache.get(origin) or copy))

    async def note_change(self, teller: str) -> None:
        """A file says something new now: crawls that are unloaded look again at what it forbade when they are used."""
        at, house = self._clock.now(), house_of(teller)
        await self._begin(house, at)
        await self._store.state_put(house, CHANGED, b"", milliseconds(at))

    async def changed_at(self, teller: str) -> float:
        house = house_of(teller)
        found = None if await self._store.crawl_get(house) is None else await self._store.state_get(house, CHANGED)
        return -inf if found is None else found[1] / 1_000

    def pause_s(self, queue: str, at: float) -> float:
        """The longest pause that files of a politeness queue ask of anybody here."""
        return max(cache.pause_s(queue, at) for cache in self._caches.values())

    async def upkeep(self, at: float) -> None:
        """Files that nobody used for long are forgotten, a bounded number at a time."""
        for house in await self._store.crawl_list(NOBODY):
            await self._store.expire(house, at)
        if await self._store.crawl_get(HOUSE_BEFORE) is not None:
            await self._begin(HOUSE, at)
            if await self._store.answer_get(HOUSE, BEFORE_COUNTS, at) is None:
                await self._store.crawl_delete(HOUSE_BEFORE)

    async def _begin(self, house: Crawl, at: float) -> None:
        if await self._store.crawl_get(house) is None:
            await self._store.crawl_put(house, b"", at)
            await self._store.answer_put(house, BEFORE_COUNTS, b"", at + STALE_FOR_S)

    async def _read(self, tenant: str, origin: str) -> CachedRobots:
        at, stored = self._clock.now(), None
        if await self._store.crawl_get(house_of(tenant)) is not None:
            stored = await self._store.answer_get(house_of(tenant), origin, at)
        if stored is None and tenant == GUIDE and await self._store.crawl_get(HOUSE_BEFORE) is not None:
            stored = (await self._store.state_get(HOUSE_BEFORE, origin) or (None,))[0]
        if stored is None:
            return CachedRobots()
        try:
            return msgspec.msgpack.decode(stored, type=CachedRobots).healed(at)
        except msgspec.DecodeError:  # also of what is no copy: then it is fetched anew
            return CachedRobots()

    def _remember(self, tenant: str, origin: str, copy: CachedRobots) -> None:
        """In memory; where that gets too much, the tenant with most of it gives way."""
        self.of(tenant).put(origin, copy)
        while sum(cache.weight for cache in self._caches.values()) > MOST_BYTES:
            max(self._caches.values(), key=lambda cache: cache.weight).evict_oldest()

    def _may_write(self, tenant: str, size: int, at: float) -> bool:
        if self._day != at // DAY_S:
            self._day = int(at // DAY_S)
            self._written.clear()
        self._written[tenant] += size
        return self._written[tenant] <= MOST_BYTES_A_DAY


def house_of(teller: str) -> Crawl:
    """Where files are kept by who told of them: a tenant that tells of very many crowds out none of the others'."""
    return HOUSE if teller == GUIDE else Crawl(NOBODY, f"{HOUSE.name} {teller}")
