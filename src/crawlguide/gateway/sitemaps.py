"""Sitemaps that robots.txt files or seeds name, for crawls that want them: read by the server, told as pages of links.

A sitemap is a URL of the frontier that the server leases itself, so it waits for its host like everybody else, is read
once, and what it leads to is judged like every link.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crawlguide.core import urls
from crawlguide.core.bounded import Bounded
from crawlguide.core.clock import instant
from crawlguide.core.errors import DataError, NotFound, RequestError, UrlError
from crawlguide.core.messages import MAX_OUTLINKS, VERSION, Fetch, Outlink, ReportMessage, SeedMessage, SeedsMessage
from crawlguide.core.telemetry import WARNING, happened
from crawlguide.core.types import DEFERRED, GRANTED, Ask, Budget
from crawlguide.gateway.readers import sitemap
from crawlguide.gateway.readers._bytes import Held
from crawlguide.guide.ask.pipeline import lease_terms
from crawlguide.guide.robots.keeper import MOST_SITEMAPS
from crawlguide.guide.robots.sitemap_seeds import READER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.definition import Policy
    from crawlguide.core.tables import U64
    from crawlguide.core.types import Crawl, UrlRecord
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl
    from crawlguide.guide.local import LocalGuide
    from crawlguide.guide.robots.errands import Errands
    from crawlguide.guide.robots.keeper import Fetcher, Named
    from crawlguide.guide.robots.outgoing import Answer

MOST_OF_ORIGIN = MOST_SITEMAPS  # that are read for one robots.txt, with all that its indexes name
MOST_COUNTED = 100_000  # origins of which that is known
AGAIN_S = 1.0
LARGE_BYTES = 8 * 1024 * 1024
RENEWED_S = 86_400.0  # where pages are fetched again, sitemaps are read again after a day, or half of a page's time
FAULT_RETRY_S, MOST_FAULTS = 60.0, 5  # after a fault of ours: 1, 2, 4 … minutes later


class Found(NamedTuple):
    """What a sitemap says: pages, and other sitemaps."""

    links: list[Outlink]
    nested: list[str]


@dataclass
class Sitemaps:
    guide: LocalGuide
    outgoing: Fetcher
    _read: Bounded[tuple[Crawl, str], int] = field(default_factory=lambda: Bounded(MOST_COUNTED))  # by crawl, origin

    def __post_init__(self) -> None:
        self._one_large = asyncio.Semaphore(1)
        self.guide.on_deleted.append(self._forget)

    @property
    def _errands(self) -> Errands[Named]:
        return self.guide.robots.sitemaps

    def _forget(self, crawl: Crawl) -> None:
        for key in [key for key in self._read if key[0] == crawl]:
            del self._read[key]

    async def run(self) -> None:
        """Read what robots.txt files name, for ever."""
        await self._errands.run(self._go)

    async def errand(self) -> None:
        """Read the sitemap whose turn it is."""
        named = await self._errands.get()
        try:
            await self._go(named)
        finally:
            self._errands.done(named)

    async def _go(self, named: Named) -> None:
        """Whatever goes wrong concerns this sitemap alone."""
        outcome = "fault"
        try:
            outcome = await self._attempt(named)
        except NotFound:  # the crawl was deleted
            outcome = "left"
        except (UrlError, RequestError) as problem:  # a URL that nobody can fetch
            _say(named.url, problem.message)
            outcome = "failed"
        except Exception as fault:  # noqa: BLE001 - nothing that one site says may end the errands of others
            words = "the sitemap {url} was not read, by a fault of the guide: {problem}"
            happened("errand_failed", words, WARNING, url=named.url, problem=repr(fault)[:200])
            if named.faults < MOST_FAULTS:
                self._later(FAULT_RETRY_S * 2.0**named.faults, named, start=None, faults=named.faults + 1)
        finally:
            self.guide.robots.telemetry.count("errands", kind="sitemap", outcome=outcome)

    async def _attempt(self, named: Named) -> str:
        if self._count(named, 0) >= MOST_OF_ORIGIN:
            return "left"
        start = await self._leased(named) if named.start is None else named.start
        if start is None:
            return "later"
        wait_s = start - self.guide.clock.now()
        if wait_s > 0:  # meanwhile others have their turns
            self._later(wait_s, named, start=start)
            return "later"
        self._count(named, 1)
        return await self._told(named)

    def _count(self, named: Named, more: int) -> int:
        """How many sitemaps were read because of the robots.txt that led to this one."""
        key = (named.crawl, named.origin)
        number = self._read.get(key, 0) + more
        if number:
            self._read[key] = number
        return number

    async def _leased(self, named: Named) -> float | None:
        """When its host may be asked for it; None: not now, or never, since that was done or is not permitted."""
        guide, crawl = self.guide, named.crawl
        active = await guide.crawls.get(crawl, guide.clock.now(), create=False)
        ids = np.array([urls.identity(urls.canonical(named.url))], np.uint64)
        await guide.store.expire(crawl, guide.clock.now())
        (record,) = await guide.store.find(crawl, ids)
        if record is None:
            await guide.seed(crawl, SeedsMessage([SeedMessage(named.url, priority=0.0)]), create=False)
        elif not await self._is_due(active, named, ids, record):
            return None
        batch = await guide.store.look(crawl, ids)
        ask = Ask(crawl, READER, guide.clock.now(), Budget(1))
        grants = await guide.store.reserve(crawl, batch, lease_terms(active.definition.policy, ask, ask.at))
        await guide.store.commit(durable=False)
        if len(batch) and grants.outcome[0] == DEFERRED:
            self._later(max(AGAIN_S, float(grants.start[0]) - guide.clock.now()), named)
        return float(grants.start[0]) if len(batch) and grants.outcome[0] == GRANTED else None

    async def _is_due(self, active: ActiveCrawl, named: Named, ids: U64, record: UrlRecord) -> bool:
        """Whether it was never read, or long ago in a crawl that fetches again; then it waits for its turn anew."""
        at = self.guide.clock.now()
        if record.state == "leased":  # as before a fault; or to a crawler, who may fail
            self._later(FAULT_RETRY_S, named)
            return False
        if record.state != "done" or record.fetched is None:
            return True
        wait_s = record.fetched + sitemap_age_s(active.definition.policy) - at
        if wait_s <= 0:
            await self.guide.store.schedule(named.crawl, ids, np.array([at]))
            await self.guide.store.expire(named.crawl, at)
            self._count(named, -1)  # it was counted when it was read first
        elif not named.nested and wait_s < float("inf"):
            self._later(wait_s, named)
        return wait_s <= 0

    def _later(self, wait_s: float, named: Named, **changes: Any) -> None:
        """Unless its crawl is gone, or there is no room: then its robots.txt names it again within a day."""
        if self._errands.is_wanted(named):
            self._errands.put_nowait(named._replace(**changes), self.guide.clock.now() + wait_s)

    async def _told(self, named: Named) -> str:
        """A sitemap takes many times its size in memory: a large one is put aside, and fetched when it is its turn."""
        policy = (await self.guide.crawls.get(named.crawl, self.guide.clock.now(), create=False)).definition.policy
        if named.large:
            async with self._one_large:
                return await self._taken(named, policy, sitemap.MAX_BYTES)
        return await self._taken(named, policy, LARGE_BYTES)

    async def _taken(self, named: Named, policy: Policy, most_bytes: int) -> str:
        answer = await self.outgoing.get(named.url, policy.user_agent, most_bytes)
        if answer.cut and not named.large:
            wait_s = max(AGAIN_S, policy.default_delay_s)
            self._later(wait_s, named, start=self.guide.clock.now() + wait_s, large=True)
            self._count(named, -1)
            return "later"
        found = await asyncio.to_thread(read, named.url, answer)
        status, error = (answer.status, None) if answer.status is not None else (None, "other")
        for start in range(0, max(len(found.links), 1), MAX_OUTLINKS):
            if not self._errands.is_wanted(named):  # the crawl is another one by now
                return "left"
            links = found.links[start : start + MAX_OUTLINKS]
            report = ReportMessage(VERSION, READER, [Fetch(named.url, status, error, outlinks=links)], named.crawl.name)
            await self.guide.tell(report, named.crawl.tenant, create=False)
            await self._heard(named.crawl, links, due=policy.fetches_again)
        for url in found.nested[:MOST_OF_ORIGIN]:
            self._errands.put_nowait(named._replace(url=url, nested=True, start=None, faults=0, large=False))
        if policy.fetches_again and not named.nested:
            self._later(sitemap_age_s(policy), named, start=None, faults=0)
        return "failed" if answer.status is None else "done"

    async def _heard(self, crawl: Crawl, links: Sequence[Outlink], due: bool) -> None:
        """What it says of pages is remembered; those that were changed after they were fetched may be due now."""
        ids, at = np.array([urls.identity(link.url) for link in links], np.uint64), self.guide.clock.now()
        active = await self.guide.crawls.get(crawl, at, create=False)
        active.sitemap_facts.hear(ids, [link.metadata or {} for link in links])
        if active.refresher is not None:
            active.refresher.hint(ids, [(link.metadata or {}).get("changefreq", "") for link in links])
        if due:
            await self._changed(crawl, ids, [(link.metadata or {}).get("lastmod", "") for link in links])
        await self.guide.store.commit(durable=False)

    async def _changed(self, crawl: Crawl, ids: U64, days: Sequence[str]) -> None:
        records, at = await self.guide.store.find(crawl, ids), self.guide.clock.now()
        due = [
            record is not None and record.state == "done" and record.fetched is not None and record.fetched < when <= at
            for record, when in zip(records, map(instant, days), strict=True)
        ]
        active = await self.guide.crawls.get(crawl, at, create=False)
        if active.refresher is not None:
            await active.refresher.said_to_have_changed(self.guide.store, crawl, ids[due], at)
        else:
            await self.guide.store.schedule(crawl, ids[due], np.full(sum(due), at))


def sitemap_age_s(policy: Policy) -> float:
    """How long after it was read a sitemap is read again."""
    return min(RENEWED_S, policy.recrawl_after_s / 2) if policy.fetches_again else float("inf")


def read(url: str, answer: Answer) -> Found:
    """What an answer says, if it is a sitemap; in whatever order of its entries."""
    found = Found([], [])
    if answer.status != 200 or answer.cut:
        _say(url, answer.problem or ("it is too large" if answer.cut else f"status {answer.status}"))
        return found
    try:
        for entry in sitemap.entries(Held("it", answer.body)):
            _sort(entry, url, found)
    except DataError as wrong:
        _say(url, wrong.message)
    return found


def _sort(entry: sitemap.Entry, base: str, found: Found) -> None:
    try:
        url = urls.canonical(entry.text("loc"), base)
    except UrlError:
        return
    if entry.nested:
        found.nested.append(url)
        return
    told = {
        name: text
        for name in ("lastmod", "priority", "changefreq")
        if (text := entry.text(name)[: sitemap.MAX_LASTMOD])
    }
    found.links.append(Outlink(url, metadata=told))


def _say(url: str, problem: str) -> None:
    happened("sitemap_unread", "the sitemap {url} was not read: {problem}", url=url, problem=problem[:200])
