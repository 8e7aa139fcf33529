"""Sitemaps that robots.txt files or seeds name, for crawls that want them: read by the server, told as pages of links.

A sitemap is a URL of the frontier that the server leases itself, so it waits for its host like everybody else, is read
once, and what it leads to is judged like every link.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core import urls
from crawlguide.core.clock import instant
from crawlguide.core.errors import CrawlGuideError, DataError, UrlError
from crawlguide.core.messages import MAX_OUTLINKS, VERSION, Fetch, Outlink, ReportMessage, SeedMessage, SeedsMessage
from crawlguide.core.telemetry import happened
from crawlguide.core.types import DEFERRED, GRANTED, Ask, Budget
from crawlguide.gateway.readers import sitemap
from crawlguide.guide.ask.pipeline import lease_terms
from crawlguide.guide.robots.sitemap_seeds import READER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.definition import Policy
    from crawlguide.core.tables import U64
    from crawlguide.core.types import Crawl
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl
    from crawlguide.guide.local import LocalGuide
    from crawlguide.guide.robots.keeper import Fetcher, Named
    from crawlguide.guide.robots.outgoing import Answer

WORKERS = 4
MOST_OF_ORIGIN = 1_000  # sitemaps that are read for one robots.txt, with all that its indexes name
AGAIN_S = 1.0
RENEWED_S = 86_400.0  # where pages are fetched again, sitemaps are read again after a day, or half of a page's time


class Found(NamedTuple):
    """What a sitemap says: pages, and other sitemaps."""

    links: list[Outlink]
    nested: list[str]


@dataclass
class Sitemaps:
    guide: LocalGuide
    outgoing: Fetcher
    _read: Counter[tuple[Crawl, str]] = field(default_factory=Counter)  # by crawl and origin of the robots.txt

    async def run(self) -> None:
        """Read what robots.txt files name, for ever."""
        await asyncio.gather(*(self._worker() for _ in range(WORKERS)))

    async def _worker(self) -> None:
        while True:
            await self.errand()

    async def errand(self) -> None:
        """Read the sitemap that was named first."""
        named = await self.guide.robots.sitemaps.get()
        if self._read[named.crawl, named.origin] >= MOST_OF_ORIGIN:
            return
        try:
            start = await self._leased(named) if named.start is None else named.start
            if start is not None:
                self._read[named.crawl, named.origin] += 1
                await asyncio.sleep(start - self.guide.clock.now())
                await self._told(named)
        except CrawlGuideError as problem:  # of the store, which says so itself, or a URL that nobody can fetch
            _say(named.url, problem.message)

    async def _leased(self, named: Named) -> float | None:
        """When its host may be asked for it; None: not now, or never, since that was done or is not permitted."""
        guide, crawl = self.guide, named.crawl
        await guide.seed(crawl, SeedsMessage([SeedMessage(named.url, priority=0.0)]))
        active = await guide.crawls.get(crawl, guide.clock.now())
        ids = np.array([urls.identity(urls.canonical(named.url))], np.uint64)
        if not await self._is_due(active, named, ids):
            return None
        batch = await guide.store.look(crawl, ids)
        ask = Ask(crawl, READER, guide.clock.now(), Budget(1))
        grants = await guide.store.reserve(crawl, batch, lease_terms(active.definition.policy, ask))
        await guide.store.commit(durable=False)
        if len(batch) and grants.outcome[0] == DEFERRED:
            self._later(AGAIN_S, named)
        return float(grants.start[0]) if len(batch) and grants.outcome[0] == GRANTED else None

    async def _is_due(self, active: ActiveCrawl, named: Named, ids: U64) -> bool:
        """Whether it was never read, or long ago in a crawl that fetches again; then it waits for its turn anew."""
        (record,), at = await self.guide.store.find(named.crawl, ids), self.guide.clock.now()
        if record is None or record.state != "done" or record.fetched is None:
            return True
        wait_s = record.fetched + sitemap_age_s(active.definition.policy) - at
        if wait_s <= 0:
            await self.guide.store.schedule(named.crawl, ids, np.array([at]))
            await self.guide.store.expire(named.crawl, at)
            self._read[named.crawl, named.origin] -= 1  # it was counted when it was read first
        elif not named.nested and wait_s < float("inf"):
            self._later(wait_s, named)
        return wait_s <= 0

    def _later(self, wait_s: float, named: Named) -> None:
        asyncio.get_running_loop().call_later(wait_s, self.guide.robots.sitemaps.put_nowait, named)

    async def _told(self, named: Named) -> None:
        policy = (await self.guide.crawls.get(named.crawl, self.guide.clock.now())).definition.policy
        answer = await self.outgoing.get(named.url, policy.user_agent, sitemap.MAX_BYTES)
        found = await asyncio.to_thread(read, named.url, answer)
        status, error = (answer.status, None) if answer.status is not None else (None, "other")
        for start in range(0, max(len(found.links), 1), MAX_OUTLINKS):
            links = found.links[start : start + MAX_OUTLINKS]
            fetch = Fetch(named.url, status, error, outlinks=links)
            await self.guide.tell(ReportMessage(VERSION, READER, [fetch], named.crawl.name), named.crawl.tenant)
            await self._heard(named.crawl, links, due=policy.recrawl)
        for url in found.nested:
            self.guide.robots.sitemaps.put_nowait(named._replace(url=url, nested=True))
        if policy.recrawl and not named.nested:
            self._later(sitemap_age_s(policy), named._replace(start=None))

    async def _heard(self, crawl: Crawl, links: Sequence[Outlink], due: bool) -> None:
        """What it says of pages is remembered; those that were changed after they were fetched may be due now."""
        ids, at = np.array([urls.identity(link.url) for link in links], np.uint64), self.guide.clock.now()
        (await self.guide.crawls.get(crawl, at)).sitemap_facts.hear(ids, [link.metadata or {} for link in links])
        if due:
            await self._changed(crawl, ids, [(link.metadata or {}).get("lastmod", "") for link in links])
        await self.guide.store.commit(durable=False)

    async def _changed(self, crawl: Crawl, ids: U64, days: Sequence[str]) -> None:
        records, at = await self.guide.store.find(crawl, ids), self.guide.clock.now()
        due = [
            record is not None and record.state == "done" and record.fetched is not None and record.fetched < when <= at
            for record, when in zip(records, map(instant, days), strict=True)
        ]
        await self.guide.store.schedule(crawl, ids[due], np.full(sum(due), at))


def sitemap_age_s(policy: Policy) -> float:
    """How long after it was read a sitemap is read again."""
    return min(RENEWED_S, policy.recrawl_after_s / 2) if policy.recrawl else float("inf")


def read(url: str, answer: Answer) -> Found:
    """What an answer says, if it is a sitemap; in whatever order of its entries."""
    found = Found([], [])
    if answer.status != 200 or answer.cut:
        _say(url, answer.problem or ("it is too large" if answer.cut else f"status {answer.status}"))
        return found
    with tempfile.NamedTemporaryFile(suffix=".xml") as file:
        file.write(answer.body)
        file.flush()
        try:
            for entry in sitemap.entries(Path(file.name)):
                _sort(entry, url, found)
        except DataError as wrong:
            _say(url, wrong.message.replace(file.name, "it"))
    return found


def _sort(entry: sitemap.Entry, base: str, found: Found) -> None:
    try:
        url = urls.canonical(entry.text("loc"), base)
    except UrlError:
        return
    if entry.nested:
        found.nested.append(url)
        return
    told = {name: text for name in ("lastmod", "priority") if (text := entry.text(name)[: sitemap.MAX_LASTMOD])}
    found.links.append(Outlink(url, metadata=told))


def _say(url: str, problem: str) -> None:
    happened("sitemap_unread", "the sitemap {url} was not read: {problem}", url=url, problem=problem[:200])
