"""Seeds that are sitemaps: the server reads them itself, so no crawler is sent for them.

They wait like every seed until the robots.txt of their origin is known and permits it. Then they are leased to the
reader instead of being given out: if it does not come to read one, its lease ends and it waits again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core import urls
from crawlguide.core.types import GRANTED
from crawlguide.guide.ask.pipeline import lease_terms
from crawlguide.policy.robots.cache import origin_of
from crawlguide.policy.robots.normal_form import path_of_canonical

if TYPE_CHECKING:
    from crawlguide.core.definition import Policy
    from crawlguide.core.protocols import Store
    from crawlguide.core.types import Ask, Batch
    from crawlguide.policy.robots import RobotsCache

READER = "sitemaps"  # as whom the server leases and tells
ENDINGS = (".xml", ".xml.gz")


class Taken(NamedTuple):
    """A sitemap that was leased to the reader, and when its host may be asked for it."""

    url: str
    start: float


async def taken(store: Store, policy: Policy, ask: Ask, batch: Batch, cache: RobotsCache) -> list[Taken]:
    """Of the rows of a batch those that are seeds, look like sitemaps and may be read now."""
    agent, rows = policy.user_agent, np.flatnonzero(batch.depth == 0)
    seeds = zip(rows.tolist(), batch.url[rows].tolist(), strict=True)
    found = [row for row, url in seeds if is_sitemap(url) and _permitted(cache, url, agent)]
    if not found:
        return []
    terms = lease_terms(policy, replace(ask, crawler_id=READER, request_id=None), ask.at)
    some = batch.take(np.array(found))
    grants = await store.reserve(ask.crawl, some, terms)
    given = zip(some.url.tolist(), grants.start.tolist(), (grants.outcome == GRANTED).tolist(), strict=True)
    return [Taken(url, start) for url, start, leased in given if leased]


def is_sitemap(url: str) -> bool:
    """By its name: sitemap.xml, news-sitemap-2.xml.gz."""
    name = urls.parts(url).path.rpartition("/")[2].lower()
    return "sitemap" in name and name.endswith(ENDINGS)


def _permitted(cache: RobotsCache, url: str, agent: str) -> bool:
    """The robots.txt of its origin is known, and says yes."""
    file = cache.file(origin_of(url), agent)
    return file is not None and bool(file.matcher.permits([path_of_canonical(url)])[0])
