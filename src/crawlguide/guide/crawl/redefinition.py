"""A crawl whose definition changed while it ran: what it knows already is judged anew, some URLs at a time.

The record of a crawl says which states are still to be gone through, so that a restart begins them anew.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls
from crawlguide.core.turns import in_turns
from crawlguide.guide.ask.valuation import priority_at_rest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from crawlguide.core.definition import Definition
    from crawlguide.core.protocols import Filter, Store
    from crawlguide.core.tables import U64
    from crawlguide.core.types import Crawl
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl, CrawlRecord

PRIORITIES_AT_ONCE = 500
DROPPED, QUEUED = "dropped", "queued"
WRITTEN_DOWN = ("forbid", "either", "shut")  # refusals that the store remembers


def states(old: CrawlRecord, new: Definition, kinds: Sequence[Filter]) -> tuple[str, ...]:
    """The states whose URLs the new definition, with filters of these kinds, may see with other eyes."""
    before = old.definition
    wanted = set(old.renew)
    read = {field for rule in kinds if rule.refusal in WRITTEN_DOWN for field in getattr(rule, "reads", ())}
    if any(attrgetter(field)(before) != attrgetter(field)(new) for field in read):
        wanted.add(DROPPED)
    as_before = (before.rules, before.policy.domain_weights) == (new.rules, new.policy.domain_weights)
    if not as_before or not same_judge(before, new):
        wanted.add(QUEUED)
    return tuple(sorted(wanted))


def same_judge(old: Definition, new: Definition) -> bool:
    return (old.strategy, old.goal) == (new.strategy, new.goal)


async def step(store: Store, crawl: Crawl, active: ActiveCrawl, kinds: Sequence[Filter], most: int) -> bool:
    """Judge up to `most` URLs anew; True if they were the last of their state."""
    state, *rest = active.record.renew
    records, active.renewed_to = await store.scan(crawl, state, None, most, active.renewed_to)
    records = [record for record in records if urls.shaped(record.url) == record.url]  # by others nothing is found
    await active.intake.search_ahead(lambda: [record.url for record in records])
    if state == DROPPED:  # what a filter refused that does so no longer waits again
        reasons = {rule.name for rule in kinds if rule.refusal in WRITTEN_DOWN}
        await _revive(store, crawl, active, [record.url for record in records if record.reason in reasons])
    else:
        await _rank(store, crawl, active, [record.url for record in records])
    if active.renewed_to is not None:
        return False
    active.record.renew = tuple(rest)
    return True


async def set_priorities(store: Store, crawl: Crawl, old: ActiveCrawl, new: ActiveCrawl) -> None:
    """Priorities of single URLs hold at once."""
    before, now = old.manual_factors.urls, new.manual_factors.urls
    changed = {url: now.get(url, np.nan) for url in before.keys() | now.keys() if before.get(url) != now.get(url)}
    async for some in in_turns(list(changed.items()), PRIORITIES_AT_ONCE):
        ids = _ids(url for url, _ in some)
        await store.set_priority(crawl, ids, np.array([priority for _, priority in some]))
        batch = await store.look(crawl, ids)
        await new.intake.search_ahead(batch.url.tolist)
        await store.rank(crawl, batch.id, priority_at_rest(new, batch))


async def _revive(store: Store, crawl: Crawl, active: ActiveCrawl, refused: Sequence[str]) -> None:
    inside = [url for url in refused if active.intake.reason(url, urls.queue(url)) is None]
    if inside:
        await store.revive(crawl, _ids(inside), active.intake.max_depth)


async def _rank(store: Store, crawl: Crawl, active: ActiveCrawl, waiting: Sequence[str]) -> None:
    """What is banned is dropped, the rest gets its new rank. What left the scope is dropped when it would be given."""
    bans = active.intake.bans
    if bans is not None:
        await store.drop(crawl, _ids(url for url in waiting if bans(url, urls.queue(url))), "banned")
    batch = await store.look(crawl, _ids(waiting))
    await store.rank(crawl, batch.id, priority_at_rest(active, batch))


def _ids(addresses: Iterable[str]) -> U64:
    return np.array([urls.identity(url) for url in addresses], np.uint64)
