"""A tell: what was fetched becomes state, evidence and new candidates; then it is acknowledged."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.columns import among, distinct, first_of_each, texts
from crawlguide.core.messages import Ack, ItemResult
from crawlguide.core.turns import between_steps
from crawlguide.core.types import READ_TEXT, READ_TITLE, Lesson
from crawlguide.guide.ask.valuation import priority_at_rest
from crawlguide.guide.tell.intake import no_fetches, seeded
from crawlguide.guide.tell.pages import is_readable, page_of, told_relevance
from crawlguide.policy.robots.cache import is_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.messages import Fetch
    from crawlguide.core.protocols import Store
    from crawlguide.core.tables import I64, U64, Mask
    from crawlguide.core.types import Crawl, Discovery, Links, Recorded, Report, Seed
    from crawlguide.features.rewards import Rewards
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl
    from crawlguide.guide.robots.keeper import Keeper

NOTHING: U64 = np.zeros(0, np.uint64)


@dataclass(frozen=True)
class TellTerms:
    """What a report may do besides being recorded."""

    trains: bool = True  # fetches that were never assigned teach strategies, too
    grows: bool = True  # links that nobody knows join the frontier


USUAL = TellTerms()


@dataclass(frozen=True)
class Telling:
    store: Store
    robots: Keeper

    async def tell(
        self,
        active: ActiveCrawl,
        report: Report,
        fetches: Sequence[Fetch],
        sizes: Sequence[int],
        terms: TellTerms = USUAL,
    ) -> list[Ack]:
        """What several tell, each so many of the fetches in their order; returns an acknowledgement for each."""
        crawl, at, policy = report.crawl, report.at, active.definition.policy
        if not terms.grows:
            report = await self._without_new_links(report)
        await between_steps(len(report.links))
        recorded = await self.store.record(crawl, report.fetches, at, policy.max_retries, terms.trains)
        await self._located(report, recorded, fetches)
        discovered = await self.discovered(active, report, recorded, fetches)
        if active.refresher is not None:
            used = np.array([reason is None for reason in recorded.skipped], np.bool_)
            again, due = active.refresher.hear(report.fetches, fetches, used, at)
            await self.store.schedule(crawl, again, due)
        elif policy.fetches_again:
            pages = [not is_file(url) for url in report.fetches.url]  # a robots.txt has times of its own
            targets = report.fetches.target_id[pages]
            await self.store.schedule(crawl, targets, np.full(len(targets), at + policy.recrawl_after_s))
        counts = recorded.taught & np.array([reason is None for reason in recorded.skipped], np.bool_)
        await self.robots.take_reported(report, fetches, counts)
        return _acks(report, recorded, discovered, sizes)

    async def seed(self, active: ActiveCrawl, crawl: Crawl, seeds: Sequence[Seed], at: float) -> int:
        """Add seeds; returns how many were new. To learners they are links that stand on no page."""
        await active.intake.search_ahead(lambda: [seed.url for seed in seeds])
        links = seeded(seeds, active.intake)
        discovery = await self.store.discover(crawl, links, None, at)
        learned = NOTHING
        if active.learner is not None:
            nobody, nothing = texts([]), no_fetches()
            lesson = Lesson(at, nothing, nobody, nobody, links, fresh_links(links, discovery))
            learned = await active.learner.learn(lesson)
        await self.rank(active, crawl, np.concatenate([discovery.touched, learned]))
        return discovery.new

    async def _located(self, report: Report, recorded: Recorded, messages: Sequence[Fetch]) -> None:
        """Where crawlers found hosts, for politeness that counts by address.

        Of fetches that were taken and led to no other host: the address says where that other one is.
        """
        fetches = report.fetches
        for item, host, target, skipped in zip(
            fetches.item.tolist(), fetches.host.tolist(), fetches.target_host.tolist(), recorded.skipped, strict=True
        ):
            address = messages[item].ip
            if address and skipped is None and host == target:
                await self.store.located(host, address)

    async def discovered(
        self, active: ActiveCrawl, report: Report, recorded: Recorded, messages: Sequence[Fetch]
    ) -> I64:
        """Links of accepted fetches join the frontier; everything they touch, or teach, is ranked anew.

        Returns the item of each new URL.
        """
        fetches, links = report.fetches, report.links
        used = np.array([reason is None for reason in recorded.skipped], np.bool_)
        if not used.all():
            links = links.take(used[links.parent])
        discovery = await self.store.discover(report.crawl, links, fetches, report.at)
        found = fetches.item[links.parent[fresh_links(links, discovery)]]
        await between_steps(len(links))
        learned = NOTHING
        used &= recorded.taught
        if not used.all():
            links = links.take(used[links.parent])
        _teach_judge(active, [messages[item] for item in fetches.item[used].tolist()])
        if active.learner is not None or active.learning_filters:
            lesson = lesson_of(report, used, links, discovery, messages, active.rewards)
            await between_steps(len(links))
            learned = await active.learner.learn(lesson) if active.learner is not None else NOTHING
            for rule in active.learning_filters:
                rule.learn(lesson)
        await between_steps(len(links))
        await self.rank(active, report.crawl, np.concatenate([discovery.touched, recorded.changed, learned]))
        await between_steps(len(links))
        return found

    async def _without_new_links(self, report: Report) -> Report:
        """The report of a tenant that may not know more URLs: links to those that it knows count as always."""
        known = np.array(
            [found is not None for found in await self.store.find(report.crawl, report.links.id)], np.bool_
        )
        left = report.links.take(known) if len(known) else report.links
        lost = Counter(report.fetches.item[report.links.parent[~known]].tolist())
        return replace(report, links=left, truncated=lost + Counter(report.truncated))

    async def rank(self, active: ActiveCrawl, crawl: Crawl, ids: U64) -> None:
        """Write the priority at rest of the URLs whose evidence changed."""
        if len(ids):
            batch = await self.store.look(crawl, distinct(ids))
            await active.intake.search_ahead(batch.url.tolist)
            await self.store.rank(crawl, batch.id, priority_at_rest(active, batch))


def _teach_judge(active: ActiveCrawl, fetches: Sequence[Fetch]) -> None:
    """Pages whose relevance was told are examples for the judge of those that nobody judges."""
    if active.judge is not None:
        for fetch in fetches:
            told = told_relevance(fetch)
            if told is not None and is_readable(fetch):
                active.judge.hear(page_of(fetch), told)


def lesson_of(
    report: Report,
    used: Mask,
    links: Links,
    discovery: Discovery,
    messages: Sequence[Fetch],
    rewards: Rewards | None,
) -> Lesson:
    """The accepted fetches with what was found on them; `links` are theirs, by their place in the report."""
    everything = bool(used.all())
    fetches = report.fetches if everything else report.fetches.take(used)
    reward, again = (fetches.relevance, used[used] & False) if rewards is None else rewards.hear(fetches)
    accepted = [messages[item] for item in report.fetches.item[used].tolist()]
    return Lesson(
        at=report.at,
        fetches=fetches,
        title=texts([(fetch.title or "")[:READ_TITLE] for fetch in accepted]),
        text=texts([(fetch.text or "")[:READ_TEXT] for fetch in accepted]),
        links=links if everything else links.attach(parent=(np.cumsum(used) - 1)[links.parent]),
        fresh=fresh_links(links, discovery),
        reward=reward,
        again=again,
    )


def fresh_links(links: Links, discovery: Discovery) -> Mask:
    """Of several links to a new URL the first is the one that found it."""
    return among(links.id, discovery.fresh) & first_of_each(links.id)


def _acks(report: Report, recorded: Recorded, found: I64, sizes: Sequence[int]) -> list[Ack]:
    """To each what it told."""
    results, acks, start = _results(report, recorded), list[Ack](), 0
    discovered = np.bincount(found, minlength=len(results)).tolist()
    for size in sizes:
        mine = slice(start, start := start + size)
        accepted = sum(result.status == "ok" for result in results[mine])
        truncated = sum(report.truncated.get(item, 0) for item in range(mine.start, mine.stop))
        acks.append(Ack(accepted, sum(discovered[mine]), truncated, results[mine]))
    return acks


def _results(report: Report, recorded: Recorded) -> list[ItemResult]:
    """The fate of every item, in the order in which they came."""
    items, relevance = report.fetches.item.tolist(), report.fetches.relevance.tolist()
    skipped = zip(items, recorded.skipped, strict=True)
    skips = {**report.skips, **{item: reason for item, reason in skipped if reason is not None}}
    known = {item: round(value, 4) for item, value in zip(items, relevance, strict=True) if not isnan(value)}
    return [
        ItemResult(url, "skip" if number in skips else "ok", skips.get(number), known.get(number))
        for number, url in enumerate(report.urls)
    ]
