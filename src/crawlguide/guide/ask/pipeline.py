"""The corridor: gather, sample, predict, score, filter, reserve. One batch of columns walks through it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import numpy as np
from msgspec import UNSET

from crawlguide import scoring
from crawlguide.core.definition import AUTO
from crawlguide.core.types import LEASED, LeaseTerms
from crawlguide.guide.ask import scoped_hosts
from crawlguide.guide.ask.valuation import best_of, changed_priorities, priority_at_rest, stands, valued

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.clock import Clock
    from crawlguide.core.config import GuideOptions
    from crawlguide.core.protocols import Defers, Filter, Rests, Shuts, Store, Withholds
    from crawlguide.core.tables import F64, U64, Mask, Rows
    from crawlguide.core.types import Ask, Batch, Hosts
    from crawlguide.guide.ask.valuation import Valuation
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl
    from crawlguide.guide.robots.keeper import Keeper

LEASE_GRACE = 1.25
LAST = -1.0  # the priority of what is looked at when there is nothing else
WIDER = (1, 4, 16)
CANDIDATES_PER_HOST = 3


@dataclass(frozen=True)
class Walked:
    """What came out at the end: granted rows, the terms of their scores and their starts; and what fell by the way."""

    ask: Ask  # with what the strategy drew for it
    batch: Batch
    terms: F64
    start: F64
    metadata: Sequence[bytes | None] = ()
    dropped: dict[str, int] = field(default_factory=dict)
    deferred: list[tuple[str, float, str]] = field(default_factory=list)  # URL, seconds to wait, which filter says so
    worth: list[tuple[U64, F64]] = field(default_factory=list)  # what was looked at, where its worth has changed
    at: float = 0.0  # when the promise was made: leases and waits count from then
    again: bool = False  # something came into the queues meanwhile that goes before all of it

    def take(self, rows: Rows) -> Walked:
        terms, start = self.terms.take(rows, 0), self.start.take(rows)
        metadata = [self.metadata[row] for row in rows.tolist()] if self.metadata else ()
        return replace(self, batch=self.batch.take(rows), terms=terms, start=start, metadata=metadata)


@dataclass(frozen=True)
class Pipeline:
    store: Store
    options: GuideOptions
    robots: Keeper
    clock: Clock

    async def walk(self, active: ActiveCrawl, ask: Ask) -> Walked:
        """Look at more candidates only while filters leave the answer short and there are more."""
        wanted = ask.budget.max_urls
        usual = max(self.options.candidates, wanted + wanted // 4)
        forbidden: Counter[str] = Counter()
        for limit in (usual * wider for wider in WIDER):
            drawn = self._drawn(active, ask)
            batch = await self._gathered(active, drawn, limit)
            walked = await self._judged(active, drawn, batch, limit, forbidden)
            if len(walked.batch) >= wanted or (len(batch) < limit and not walked.again):
                break
        if len(walked.batch) < wanted:
            walked = await self._sought(active, ask, usual, forbidden) or walked
        walked.dropped.update(+forbidden)  # what one look dropped for good, the next does not see any more
        if len(walked.batch) >= wanted:
            walked.dropped.pop("budget", None)  # the answer is full: what did not fit was not refused
        if len(walked.batch) > wanted:  # whatever the filters are
            walked = walked.take(np.arange(wanted))
        return await self._reserved(active, ask, walked)

    async def _sought(self, active: ActiveCrawl, ask: Ask, limit: int, forbidden: Counter[str]) -> Walked | None:
        """For a crawler with a scope of its own: what lies in it, however low it stands. None: nothing was found."""
        scope = active.crawlers.scope_of(ask.crawler_id)
        hosts = await scoped_hosts.hosts(self.store, active, ask, scope) if scope is not None else None
        if not hosts:
            return None
        drawn = self._drawn(active, ask)
        batch = await self._gathered(active, replace(drawn, focus=hosts, domain_hash=None), limit)
        return await self._judged(active, drawn, batch, len(batch), forbidden)

    def _drawn(self, active: ActiveCrawl, ask: Ask) -> Ask:
        """The ask with what the strategy draws for it."""
        if active.explorer is None:
            return ask
        return replace(ask, draw=active.explorer.draw(ask, ask.budget.max_urls))

    async def _gathered(self, active: ActiveCrawl, ask: Ask, limit: int) -> Batch:
        policy = active.definition.policy
        per_host = min(CANDIDATES_PER_HOST * policy.max_per_host or limit, limit)
        ids = None
        if ask.draw is not None:
            ids, ask = ask.draw.ids, replace(ask, focus=ask.focus | ask.draw.hosts)
        looks, best, most = 0, -np.inf, active.looks.left if active.learner is not None else 1
        while looks < most:
            batch = await self.store.gather(ask.crawl, ask, limit, policy.horizon_s, per_host, ids)
            looks += 1
            if most == 1 or len(batch) < limit:  # priorities do not move, or this is all there is
                chosen = batch
                break
            worth = priority_at_rest(active, batch)
            sunk = changed_priorities(batch, worth)
            stays = stands(worth, batch.priority, ask.budget.max_urls) or not len(sunk[0])
            found = np.inf if stays else best_of(worth, ask.budget.max_urls)
            if found > best:  # where none stands, the best of all looks counts
                best, chosen = found, batch
            if stays:
                break
            await self.store.rank(ask.crawl, *sunk)
        if active.learner is not None:
            active.looks.spend(looks)
        return chosen

    async def _judged(self, active: ActiveCrawl, ask: Ask, batch: Batch, limit: int, forbidden: Counter[str]) -> Walked:
        """What of a batch may go out, best first; adds to `forbidden` what never may."""
        whole = active.strategy.whole
        sample = whole.sample(batch, ask, limit)
        if len(sample.rows) < len(batch):
            batch = batch.take(sample.rows)
        batch.arm[:] = sample.arm
        opinion = whole.judge(batch)
        worth = valued(active, batch, opinion)
        changes = active.learner is not None or opinion.at_rest is not None
        changed = [changed_priorities(batch, worth.priority)] if changes else []
        batch, terms = self.ranked(active, ask, batch, worth)
        walked = Walked(ask, batch, terms, np.zeros(len(batch)), worth=changed)
        for rule in active.filters:  # each filter sees only the survivors of the one before
            if rule is active.robots and await self.robots.ready(active, ask, walked.batch):
                return replace(walked.take(np.zeros(0, np.int64)), again=True)
            if rule is active.operator:
                await active.operator.prepare(walked.batch, ask)
            keep = rule.keep(walked.batch, ask)
            if np.count_nonzero(keep) < len(keep):
                await self._refused(active, ask, walked, rule, ~keep)
                walked = walked.take(np.flatnonzero(keep))
        forbidden.update({name: walked.dropped.get(name, 0) for name in active.forbidding})
        return walked

    def ranked(self, active: ActiveCrawl, ask: Ask, batch: Batch, worth: Valuation | None = None) -> tuple[Batch, F64]:
        """Fill in estimates, value and score, best row first; with the terms of each row's score.

        The batch was made for this ask alone, so its own block is written into.
        """
        options = self.options
        _estimate(batch.estimated_ms, options.default_fetch_ms)
        _estimate(batch.estimated_bytes, options.default_bytes)
        worth = worth or valued(active, batch, active.strategy.whole.judge(batch))
        batch.value[:], chosen = worth.value, worth.exploration
        free = np.isnan(batch.manual_priority).all()  # what a person wants goes before chance
        if active.explorer is not None and free:
            chosen = chosen + active.explorer.draw_bonus(batch, ask)
        scales = scoring.Scales(options.freshness_tau_s, slow_ms(active, options), options.heavy_bytes)
        said, slow = active.stated.of(batch.id), slow_hosts(active, batch.hosts, scales.slow_ms)
        terms, batch.score[:] = scoring.terms(batch, ask, active.weights, scales, chosen, said, slow)
        order = np.argsort(-batch.score, kind="stable")
        return batch.take(order), terms.take(order, 0)

    async def _refused(self, active: ActiveCrawl, ask: Ask, walked: Walked, rule: Filter, gone: Mask) -> None:
        """A refusal may be for this answer, for now, for as long as a host is full or failing, or for good."""
        batch = walked.batch
        if rule.refusal in ("defer", "either"):
            gone = gone & ~await self._deferred(active, ask, walked, cast("Defers", rule), gone)
            if not gone.any():
                return
        walked.dropped[rule.name] = int(np.count_nonzero(gone))
        if rule.refusal in ("forbid", "either"):
            await self.store.drop(ask.crawl, batch.id[gone], rule.name)
        if rule.refusal == "shut":
            await self.store.drop(ask.crawl, batch.id[gone & cast("Shuts", rule).shut(batch)], rule.name)
        if rule.name in active.resting and len(last := batch.id[gone & cast("Rests", rule).last(batch)]):
            await self.store.rank(ask.crawl, last, np.full(len(last), LAST))
        if rule.refusal == "withhold":
            await self._withhold(ask, batch, cast("Withholds", rule).until(batch.hosts, ask))

    async def _deferred(self, active: ActiveCrawl, ask: Ask, walked: Walked, rule: Defers, gone: Mask) -> Mask:
        """Of the refused rows those that are for later; their hosts are not looked at before."""
        batch, wait = walked.batch, rule.wait(walked.batch, ask)
        later: Mask = gone & ~np.isnan(wait)
        waiting = zip(batch.url[later].tolist(), wait[later].tolist(), strict=True)
        walked.deferred.extend((url, wait_s, rule.name) for url, wait_s in waiting)
        until = ask.at + _soonest(batch, later, wait[later])
        if rule is active.robots:  # so that they do not stand in the way; a file that comes lets its host in at once
            until += active.definition.policy.horizon_s
        await self._withhold(ask, batch, until)
        return later

    async def _withhold(self, ask: Ask, batch: Batch, until: F64) -> None:
        """Hosts that gave nothing are not gathered again before they may give something; NaN: not withheld."""
        held = np.flatnonzero(~np.isnan(until))
        if len(held):
            await self.store.withhold(ask.crawl, batch.hosts.name[held].tolist(), until[held])

    async def _reserved(self, active: ActiveCrawl, ask: Ask, walked: Walked) -> Walked:
        """The promise: leases and host slots in one step; rows that another crawler got first drop out.

        Filters may have taken their time: a slot lies no earlier than now, or it would be told too late to be kept.
        """
        at = max(ask.at, self.clock.now())
        grants = await self.store.reserve(ask.crawl, walked.batch, lease_terms(active, replace(ask, at=at)))
        granted = replace(walked, start=grants.start, metadata=grants.metadata, at=at)
        for ids, worth in walked.worth:  # not before: what sinks may be forgotten to make room
            await self.store.rank(ask.crawl, ids, worth)
        return granted.take(np.flatnonzero(grants.outcome == LEASED)) if np.count_nonzero(grants.outcome) else granted


def _soonest(batch: Batch, gone: Mask, wait: F64) -> F64:
    """How long to wait for the first row of each host of which all rows are gone; NaN for the other hosts."""
    soonest = np.full(len(batch.hosts.name), np.inf)
    np.minimum.at(soonest, batch.host[gone], wait)
    soonest[batch.host[~gone]] = np.nan
    return np.where(np.isinf(soonest), np.nan, soonest)


def lease_s(ask: Ask) -> float:
    """How long an answer to this ask is promised."""
    return ask.budget.timeout_ms / 1_000 * LEASE_GRACE


def lease_terms(active: ActiveCrawl, ask: Ask) -> LeaseTerms:
    policy = active.definition.policy
    timeout_s = ask.budget.timeout_ms / 1_000
    return LeaseTerms(
        crawler_id=ask.crawler_id,
        request_id=ask.request_id,
        at=ask.at,
        lease_s=lease_s(ask),
        delay_s=policy.default_delay_s,
        horizon_s=min(policy.horizon_s, timeout_s),
        strict=policy.strict,
        factor=policy.delay_factor,
        limit=policy.max_leases_per_host,
    )


def slow_ms(active: ActiveCrawl, options: GuideOptions) -> float:
    """From here on a fetch takes long: as the crawl says, or has learned, or else as the operator says."""
    given = active.definition.policy.slow_domain_ms
    if given == AUTO:
        return active.profile.slow_ms if active.profile is not None else options.slow_ms
    return given or options.slow_ms


def slow_hosts(active: ActiveCrawl, hosts: Hosts, slow: float) -> Mask | None:
    """Hosts that cost by `policy.slow_domain_ms` alone: the crawl sets it, and nothing gives cost a weight."""
    definition = active.definition
    if not definition.policy.slow_domain_ms or definition.weights.cost is not UNSET or active.weights.cost:
        return None
    mask: Mask = hosts.median_ms > slow
    return mask


def _estimate(known: F64, default: float) -> None:
    """Whole units, rounded up, so that what is promised on the wire adds up to no more than what was budgeted."""
    np.copyto(known, default, where=np.isnan(known))
    np.ceil(known, out=known)
