"""A crawl whose definition changed while it ran: what it knows already is judged anew, some URLs at a time.

The record of a crawl says which states are still to be gone through, so that a restart begins them anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core import urls
from crawlguide.guide.ask.valuation import priority_at_rest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from crawlguide.core.definition import Definition
    from crawlguide.core.protocols import Store
    from crawlguide.core.tables import U64
    from crawlguide.core.types import Crawl, UrlRecord
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl, Record

DROPPED, QUEUED = "dropped", "queued"
PASSING = ("scope", "banned", "traps", "risk", "robots", "rules")  # reasons that may cease to hold


def states(old: Record, new: Definition) -> tuple[str, ...]:
    """The states whose URLs the new definition may see with other eyes."""
    before = old.definition
    wanted = set(old.renew)
    if _bounds(before) != _bounds(new):
        wanted.add(DROPPED)
    as_before = (before.rules, before.policy.domain_weights) == (new.rules, new.policy.domain_weights)
    if not as_before or not same_judge(before, new):
        wanted.add(QUEUED)
    return tuple(sorted(wanted))


def same_judge(old: Definition, new: Definition) -> bool:
    return (old.strategy, old.goal) == (new.strategy, new.goal)


def _bounds(definition: Definition) -> tuple[Any, ...]:
    policy = definition.policy
    seen = policy.traps, policy.trap_patterns, policy.risk_threshold
    robots = policy.robots, policy.user_agent, policy.robots_exceptions
    domains = policy.allow_domains, policy.deny_domains, policy.seed_hosts_only
    files = policy.include_patterns, policy.exclude_patterns, policy.deny_extensions, policy.deny_content_types
    return domains, files, definition.limits.max_depth, definition.rules.ban, seen, robots


async def step(store: Store, crawl: Crawl, found: ActiveCrawl, most: int) -> bool:
    """Judge up to `most` URLs anew; True if they were the last of their state."""
    state, *rest = found.record.renew
    records, found.renewed_to = await store.scan(crawl, state, None, most, found.renewed_to)
    await (_revive if state == DROPPED else _rank)(store, crawl, found, records)
    if found.renewed_to is not None:
        return False
    found.record.renew = tuple(rest)
    return True


async def give(store: Store, crawl: Crawl, old: ActiveCrawl, new: ActiveCrawl) -> None:
    """Priorities of single URLs hold at once."""
    before, now = old.weighing.urls, new.weighing.urls
    changed = {url: now.get(url, np.nan) for url in before.keys() | now.keys() if before.get(url) != now.get(url)}
    if changed:
        ids = _ids(changed)
        await store.set_priority(crawl, ids, np.array(list(changed.values())))
        batch = await store.look(crawl, ids)
        await store.rank(crawl, batch.id, priority_at_rest(new, batch))


async def _revive(store: Store, crawl: Crawl, found: ActiveCrawl, records: Sequence[UrlRecord]) -> None:
    """What was refused and is no longer waits again."""
    refused = [record.url for record in records if record.reason in PASSING]
    inside = [url for url in refused if found.rules.reason(url, urls.queue(url)) is None]
    if inside:
        await store.revive(crawl, _ids(inside), found.rules.max_depth)


async def _rank(store: Store, crawl: Crawl, found: ActiveCrawl, records: Sequence[UrlRecord]) -> None:
    """What is banned is dropped, the rest gets its new rank. What left the scope is dropped when it would be given."""
    bans, waiting = found.rules.bans, [record.url for record in records]
    if bans is not None:
        await store.drop(crawl, _ids(url for url in waiting if bans(url, urls.queue(url))), "banned")
    batch = await store.look(crawl, _ids(waiting))
    await store.rank(crawl, batch.id, priority_at_rest(found, batch))


def _ids(found: Iterable[str]) -> U64:
    return np.array([urls.identity(url) for url in found], np.uint64)
