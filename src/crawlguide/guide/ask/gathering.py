"""Which candidates an ask looks at: the best that wait, gathered again where they turn out to be worth less by now.

A crawler that may fetch only some hosts is shown what lies there, however low it stands.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls
from crawlguide.core.columns import changed
from crawlguide.core.kernels import f64s, flag, kernel, one_i64
from crawlguide.core.notebook import Sheet
from crawlguide.core.turns import LONG_ROWS, between_steps, in_turns
from crawlguide.guide.ask.valuation import MOVED, priority_at_rest

if TYPE_CHECKING:
    from crawlguide.core.notebook import Notebook
    from crawlguide.core.protocols import Store
    from crawlguide.core.tables import U64
    from crawlguide.core.types import Ask, Batch
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl
    from crawlguide.policy.scope import Scope

READ_AT_ONCE = 2_000  # texts
CANDIDATES_PER_HOST = 3  # for each URL of a host that an answer may hold


async def gathered(store: Store, active: ActiveCrawl, ask: Ask, limit: int) -> Batch:
    """The best that wait, with what the strategy drew for this ask.

    Priorities at rest grow old while a strategy learns. Where what was gathered has sunk below what waits behind it,
    its priorities are written anew and it is gathered again, as often as the budget permits.
    """
    ids = None
    if ask.draw is not None:
        ids = ask.draw.ids
    if ask.draw is not None and ask.draw.hosts:
        ask = replace(ask, focus=ask.focus | ask.draw.hosts)
    if active.learner is None:  # priorities do not move
        return await gathered_once(store, active, ask, limit, ids)
    wanted, times, best, most = ask.budget.max_urls, 0, -np.inf, max(active.regathers.left, 1)
    while times < most:
        batch = await gathered_once(store, active, ask, limit, ids)
        times += 1
        if most == 1 or len(batch) < limit:  # this is all there is
            chosen = batch
            break
        priority = priority_at_rest(active, batch)
        sunk = changed(batch.id, priority, batch.priority, MOVED)
        stays = stands(priority, batch.priority, wanted) or not len(sunk[0])  # type: ignore[no-untyped-call]
        together = np.inf if stays else float(np.sort(priority)[-wanted:].sum())
        if together > best:  # where none stands, the best of all counts
            best, chosen = together, batch
        if stays:
            break
        await store.rank(ask.crawl, *sunk)
        await between_steps(limit)
    active.regathers.spend(times)
    return chosen


async def gathered_once(store: Store, active: ActiveCrawl, ask: Ask, limit: int, ids: U64 | None = None) -> Batch:
    """As things stand: nothing is written for it."""
    policy = active.definition.policy
    per_host = min(CANDIDATES_PER_HOST * policy.max_per_host or limit, limit)
    batch = await store.gather(ask.crawl, ask, limit, policy.horizon_s, per_host, ids)
    if len(batch) > LONG_ROWS:
        batch = await _with_texts(batch)
    await active.intake.search_ahead(batch.url.tolist)
    return batch


async def _with_texts(batch: Batch) -> Batch:
    """A long batch with all its texts at hand, which are read some at a time: most filters need them."""
    hosts = batch.hosts.attach(name=batch.hosts.name[:])  # at once: a row of a host may serve another one later
    parts = [batch.url[np.array(rows)] async for rows in in_turns(range(len(batch)), READ_AT_ONCE)]
    return batch.attach(url=np.concatenate(parts), hosts=hosts)


@kernel(flag(f64s, f64s, one_i64))
def stands(priority, before, wanted):  # type: ignore[no-untyped-def]
    """Whether the best of these are still worth as much as what waits behind them was thought to be.

    Some rows were not gathered for their priority, so the lowest fifth says nothing.
    """
    behind, below = np.partition(before, len(before) // 5)[len(before) // 5], 0
    for row in range(len(priority)):
        below += priority[row] < behind
    return below <= max(len(priority) - wanted, 0)


# How often an ask may gather again

EARNED = 1.25  # times, by each ask
SAVED = 100  # at most
FARTHEST = 10  # times in one ask
SPENT = np.dtype(np.float64)
FIRST = np.zeros(1, np.int64)


class RegatherBudget:
    """Each ask earns 1.25 gathers and may spend up to 10, so on the mean asks cost the same in a crawl of any size.

    What is spent of the savings lies in a sheet that is kept: a restart changes nothing.
    """

    def __init__(self) -> None:
        self._spent, self._kept = Sheet(SPENT), False

    @property
    def left(self) -> int:
        """For the next ask, with what it earns."""
        return min(int(SAVED - self._before), FARTHEST)

    @property
    def _before(self) -> float:
        return max(float(self._spent.rows[0]) - EARNED, 0.0) if self._spent.used else 0.0

    def spend(self, times: int) -> None:
        """An ask has gathered so often. Where none does so more than once, nothing has to be written."""
        spent = self._before + times
        if not self._spent.used or self._spent.rows[0] != spent:
            self._spent.fit(1)
            self._spent.rows[0] = spent
            self._spent.changed(FIRST)

    def remember(self, notebook: Notebook) -> None:
        self._spent, self._kept = notebook.sheet("looks", SPENT), True

    def inherit(self, before: RegatherBudget) -> None:
        """Go on with another's savings, unless they lie in a notebook that is read anew."""
        if not self._kept:
            self._spent, self._kept = before._spent, before._kept


# Hosts for a crawler that may fetch only some

HOSTS_LOOKED_AT, HOSTS_TAKEN, PAGE = 1_000, 20, 250


async def hosts_in_scope(store: Store, active: ActiveCrawl, ask: Ask, scope: Scope) -> frozenset[str]:
    """Some hosts within the scope that may be asked soon and on which URLs wait.

    An ask looks at a bounded number of hosts and the next one looks on from there, so every host has its turn.
    """
    domains, found = _domains_of(scope), set[str]()
    until = ask.at + active.definition.policy.horizon_s
    place, cursor = active.scope_cursors.get(scope, (0, 0))
    for _ in range(HOSTS_LOOKED_AT // PAGE):
        names, end = await store.open_hosts(ask.crawl, domains[place], until, PAGE, cursor)
        more = {name for name in names if scope.covers(name)} - found
        if found and len(found) + len(more) > HOSTS_TAKEN:
            break  # the next ask begins with this page
        found |= more
        if len(more) < HOSTS_TAKEN:  # else there is more here, once these are taken
            place, cursor = (place, end) if end is not None else ((place + 1) % len(domains), 0)
        if len(found) >= HOSTS_TAKEN:
            break
    active.scope_cursors[scope] = (place, cursor)
    return frozenset(sorted(found)[:HOSTS_TAKEN])


def _domains_of(scope: Scope) -> list[str | None]:
    """The registrable domains a scope lies within; [None] if it spans more than the store could find by their names."""
    names = [urls.registrable_domain(name) for name in sorted(scope.allow)]
    return list(dict.fromkeys(names)) if names and None not in names else [None]
