"""Hosts for a crawler that may fetch only some, when the best URLs of all are not among them.

An ask looks at a bounded number of hosts and the next one looks on from there, so every host has its turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core import urls

if TYPE_CHECKING:
    from crawlguide.core.protocols import Store
    from crawlguide.core.types import Ask
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl
    from crawlguide.policy.scope import Scope

LOOKED_AT, TAKEN, PAGE = 1_000, 20, 250


async def hosts(store: Store, active: ActiveCrawl, ask: Ask, scope: Scope) -> frozenset[str]:
    """Some hosts within the scope that may be asked soon and on which URLs wait."""
    domains, found = domains_of(scope), set[str]()
    until = ask.at + active.definition.policy.horizon_s
    place, cursor = active.sought.get(scope, (0, 0))
    for _ in range(LOOKED_AT // PAGE):
        names, end = await store.open_hosts(ask.crawl, domains[place], until, PAGE, cursor)
        more = {name for name in names if scope.covers(name)} - found
        if found and len(found) + len(more) > TAKEN:
            break  # the next ask begins with this page
        found |= more
        if len(more) < TAKEN:  # else there is more here, once these are taken
            place, cursor = (place, end) if end is not None else ((place + 1) % len(domains), 0)
        if len(found) >= TAKEN:
            break
    active.sought[scope] = (place, cursor)
    return frozenset(sorted(found)[:TAKEN])


def domains_of(scope: Scope) -> list[str | None]:
    """The registrable domains a scope lies within; [None] if it spans more than the store could find by their names."""
    names = [urls.registrable_domain(name) for name in sorted(scope.allow)]
    return list(dict.fromkeys(names)) if names and None not in names else [None]
