"""An answer that is told a second time counts from then: what follows it on the same hosts waits accordingly.

The same request gets the same answer, with the same waits, and a crawler counts them from receipt. If the first answer
was lost, or the crawler begins anew, its fetches come later than their slots were. What others were given meanwhile
cannot be taken back; but nothing more is given out for these hosts before a delay has passed after the last of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls
from crawlguide.store.tables.politeness import LONGEST_S

if TYPE_CHECKING:
    from crawlguide.core.messages import Advice
    from crawlguide.core.protocols import Store
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Ask, Batch
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl


async def pace_again(store: Store, active: ActiveCrawl, ask: Ask, advice: Advice) -> None:
    """Of URLs that the crawler still holds; one that was told or given back is not fetched again."""
    shaped = [one for one in advice.assigned_urls if urls.shaped(one.url) == one.url]
    starts = {urls.identity(one.url): ask.at + one.not_before_ms / 1_000 for one in shaped}
    ids = np.array(list(starts), np.uint64)
    known = await store.find(ask.crawl, ids)
    held = [record is not None and record.crawler_id == ask.crawler_id for record in known]
    batch = await store.look(ask.crawl, ids[held])
    if not len(batch):
        return
    last = np.full(len(batch.hosts.name), -np.inf)
    np.maximum.at(last, batch.host, np.array([starts[key] for key in batch.id.tolist()]))
    until = np.maximum(last + _delays(active, batch), batch.hosts.next_fetch)
    for name, opens, next_fetch in zip(batch.hosts.name, until.tolist(), batch.hosts.next_fetch.tolist(), strict=True):
        if opens > next_fetch:
            await store.hold(name, until=opens)


def _delays(active: ActiveCrawl, batch: Batch) -> F64:
    """How long each host is left alone after a fetch; -inf where there is no pacing."""
    policy, hosts = active.definition.policy, batch.hosts
    own = np.fmax(policy.default_delay_s, hosts.crawl_delay)
    slow = np.minimum(policy.delay_factor * hosts.median_ms / 1_000.0, LONGEST_S)
    return np.where(own > 0, np.fmax(own, slow), -np.inf)
