"""A tell: what was fetched becomes state, evidence and new candidates; then it is acknowledged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.columns import distinct
from crawlguide.core.messages import Ack, ItemResult
from crawlguide.guide.ask.valuation import priority_at_rest
from crawlguide.guide.robots.locating import located
from crawlguide.guide.tell.intake import reported, seeded
from crawlguide.guide.tell.lessons import NOTHING, lesson, seed_lesson, taught

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.messages import Fetch
    from crawlguide.core.protocols import Store
    from crawlguide.core.tables import U64
    from crawlguide.core.types import Crawl, Recorded, Report, Seed
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl
    from crawlguide.guide.robots.keeper import Keeper


@dataclass(frozen=True)
class Telling:
    store: Store
    robots: Keeper

    async def tell(
        self, active: ActiveCrawl, crawl: Crawl, crawler_id: str, fetches: Sequence[Fetch], at: float
    ) -> Ack:
        report = reported(fetches, crawl, crawler_id, at, active.rules)
        policy = active.definition.policy
        recorded = await self.store.record(crawl, report.fetches, at, policy.max_retries)
        await located(self.store, report, recorded, fetches)
        discovered = await self._discovered(active, report, recorded, fetches)
        if policy.recrawl:
            due = np.full(len(report.fetches), at + policy.recrawl_after_s)
            await self.store.schedule(crawl, report.fetches.target_id, due)
        await self.robots.told(active, report, fetches)
        results = _results(report, recorded)
        accepted = sum(result.status == "ok" for result in results)
        return Ack(accepted, discovered, report.truncated, results)

    async def seed(self, active: ActiveCrawl, crawl: Crawl, seeds: Sequence[Seed], at: float) -> int:
        """Add seeds; returns how many were new."""
        links = seeded(seeds, active.rules)
        discovery = await self.store.discover(crawl, links, None, at)
        learned = NOTHING
        if active.learner is not None:
            learned = taught(active.learner, seed_lesson(links, discovery, at))
        await self.rank(active, crawl, np.concatenate([discovery.touched, learned]))
        return discovery.new

    async def rank(self, active: ActiveCrawl, crawl: Crawl, ids: U64) -> None:
        """Write the priority at rest of the URLs whose evidence changed."""
        if len(ids):
            batch = await self.store.look(crawl, distinct(ids))
            await self.store.rank(crawl, batch.id, priority_at_rest(active, batch))

    async def _discovered(
        self, active: ActiveCrawl, report: Report, recorded: Recorded, messages: Sequence[Fetch]
    ) -> int:
        """Links of accepted fetches join the frontier; everything they touch, or teach, is ranked anew."""
        fetches, links = report.fetches, report.links
        used = np.array([reason is None for reason in recorded.skipped], np.bool_)
        if not used.all():
            links = links.take(used[links.parent])
        discovery = await self.store.discover(report.crawl, links, fetches, report.at)
        learned = NOTHING
        if active.learner is not None or active.hearing:
            heard = lesson(report, used, links, discovery, messages, active.rewards)
            learned = taught(active.learner, heard) if active.learner is not None else NOTHING
            for rule in active.hearing:
                rule.learn(heard)
        await self.rank(active, report.crawl, np.concatenate([discovery.touched, recorded.changed, learned]))
        return discovery.new


def _results(report: Report, recorded: Recorded) -> list[ItemResult]:
    """The fate of every item, in the order in which they came."""
    told = zip(report.fetches.item.tolist(), recorded.skipped, strict=True)
    skips = {**report.skips, **{item: reason for item, reason in told if reason is not None}}
    return [
        ItemResult(url, "skip", skips[number]) if number in skips else ItemResult(url, "ok")
        for number, url in enumerate(report.urls)
    ]
