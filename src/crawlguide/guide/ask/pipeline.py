"""The pipeline of an ask: gather, sample, predict, score, filter, reserve. One batch of columns walks through it.

`walk` is an ask. `look` goes the same way for people, and changes nothing: no lease, no lesson, nothing written.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from msgspec import UNSET

from crawlguide import scoring
from crawlguide.core.columns import changed
from crawlguide.core.definition import AUTO
from crawlguide.core.turns import between_steps
from crawlguide.core.types import GRANTED, LeaseTerms
from crawlguide.guide.ask.gathering import gathered, gathered_once, hosts_in_scope
from crawlguide.guide.ask.valuation import MOVED, valued

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.clock import Clock
    from crawlguide.core.config import GuideOptions
    from crawlguide.core.definition import Policy
    from crawlguide.core.protocols import Defers, DropsSome, Filter, Prepares, RanksSomeLast, Store, Withholds
    from crawlguide.core.tables import F64, I64, U64, Mask, Rows
    from crawlguide.core.types import Ask, Batch, Hosts
    from crawlguide.guide.ask.valuation import Valuation
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl

LEASE_GRACE = 1.25
LAST = -1.0  # the priority of what is looked at when there is nothing else
WIDER = (1, 4, 16)  # how many times the usual number of candidates, as long as filters leave an answer short
MOST_CANDIDATES = 20_000  # in one step, unless even more are asked for


@dataclass(frozen=True)
class Walked:
    """What came out at the end: granted rows, the terms of their scores and their starts; and what fell by the way."""

    ask: Ask  # with what the strategy drew for it
    batch: Batch
    terms: F64
    start: F64
    metadata: Sequence[bytes | None] = ()
    dropped: dict[str, int] = field(default_factory=dict)  # how many rows each filter refused
    deferred: list[tuple[str, float, str]] = field(default_factory=list)  # URL, seconds to wait, which filter says so
    moved: tuple[U64, F64] | None = None  # URLs that were looked at and whose priority has changed; and to what
    at: float = 0.0  # when the promise was made: leases and waits count from then
    look_again: bool = False  # something came into the queues meanwhile that goes before all of it

    def take(self, rows: Rows) -> Walked:
        terms, start = self.terms.take(rows, 0), self.start.take(rows)
        metadata = [self.metadata[row] for row in rows.tolist()] if self.metadata else ()
        return replace(self, batch=self.batch.take(rows), terms=terms, start=start, metadata=metadata)

    def first(self, most: int) -> Walked:
        return self if len(self.batch) <= most else self.take(np.arange(most))


class Verdict(NamedTuple):
    """What one filter says of the rows of a look that it was shown: which of them it keeps."""

    filter_: Filter
    rows: I64
    keep: Mask


class Look(NamedTuple):
    """Rows as an ask would rank them, best first, with the terms of their scores and what the filters say."""

    ask: Ask
    batch: Batch
    terms: F64
    verdicts: list[Verdict]


@dataclass(frozen=True)
class Pipeline:
    store: Store
    options: GuideOptions
    clock: Clock

    async def walk(self, active: ActiveCrawl, ask: Ask) -> Walked:
        """What an ask would be given now. Nobody is promised anything before `reserve`.

        Looks at more candidates only while filters leave the answer short and there are more. Others are served
        between the steps of a long one: tells may come in between, and other asks of the crawl wait.
        """
        wanted = ask.budget.max_urls
        usual = max(self.options.candidates, wanted + wanted // 4)
        forbidden: Counter[str] = Counter()
        for limit in dict.fromkeys(max(usual, min(usual * wider, MOST_CANDIDATES)) for wider in WIDER):
            drawn = with_draw(active, ask)
            await between_steps(limit)
            batch = await gathered(self.store, active, drawn, limit)
            walked = await self._filtered(active, drawn, batch, limit, forbidden)
            if len(walked.batch) >= wanted or (len(batch) < limit and not walked.look_again):
                break
        scope = active.crawlers.scope_of(ask.crawler_id)
        if len(walked.batch) < wanted and scope is not None:
            hosts = await hosts_in_scope(self.store, active, ask, scope)
            if hosts:  # what lies in the crawler's own scope, however low it stands
                drawn = with_draw(active, ask)
                batch = await gathered(self.store, active, replace(drawn, focus=hosts, domain_hash=None), usual)
                walked = await self._filtered(active, drawn, batch, len(batch), forbidden)
        walked.dropped.update(+forbidden)  # what one pass dropped for good, the next does not see any more
        if len(walked.batch) >= wanted:
            walked.dropped.pop("budget", None)  # the answer is full: what did not fit was not refused
        return walked.first(wanted)  # whatever the filters are

    async def look(self, active: ActiveCrawl, ask: Ask, ids: U64 | None = None) -> Look:
        """What an ask would be shown now, without doing anything: each filter sees the survivors of those before.

        With `ids` it is these URLs, whatever their state, and every filter sees all of them.
        """
        ask, limit = replace(ask, looking=True), max(self.options.candidates, ask.budget.max_urls)
        if ids is None:
            batch = await gathered_once(self.store, active, ask, limit)
        else:
            batch = await self.store.look(ask.crawl, ids)
            await active.intake.search_ahead(batch.url.tolist)
        opinion = active.strategy.guarded.judge(batch, "look")
        batch, terms = self._ranked(active, ask, batch, valued(active, batch, opinion))
        verdicts, rows = [], np.arange(len(batch))
        for filter_ in active.filters:
            shown = batch.take(rows)
            prepared = await _prepared(filter_, shown, ask)
            if prepared is None:  # not in a look: nothing is queued for it
                continue
            keep = prepared.keep(shown, ask)
            verdicts.append(Verdict(prepared, rows, keep))
            rows = rows[keep] if ids is None else rows
        return Look(ask, batch, terms, verdicts)

    async def _filtered(
        self, active: ActiveCrawl, ask: Ask, batch: Batch, limit: int, forbidden: Counter[str]
    ) -> Walked:
        """What of a batch may go out, best first; adds to `forbidden` what never may."""
        walked = self.judged(active, ask, batch, limit)
        for filter_ in active.filters:  # each filter sees only the survivors of the one before
            await between_steps(len(walked.batch))
            prepared = await _prepared(filter_, walked.batch, ask)
            if prepared is None:
                return replace(walked.take(np.zeros(0, np.int64)), look_again=True)
            keep = prepared.keep(walked.batch, ask)
            if np.count_nonzero(keep) < len(keep):
                await self._refused(ask, walked, prepared, ~keep)
                walked = walked.take(np.flatnonzero(keep))
        for filter_ in active.filters:
            if filter_.refusal in ("forbid", "either"):
                forbidden[filter_.name] += walked.dropped.get(filter_.name, 0)
        return walked

    def judged(self, active: ActiveCrawl, ask: Ask, batch: Batch, limit: int) -> Walked:
        """What of a batch the strategy would give, best first."""
        strategy = active.strategy.guarded
        sample = strategy.sample(batch, ask, limit)
        if len(sample.rows) < len(batch):
            batch = batch.take(sample.rows)
        batch.arm[:] = sample.arm
        opinion = strategy.judge(batch)
        valuation = valued(active, batch, opinion)
        learns = active.learner is not None or opinion.at_rest is not None
        moved = changed(batch.id, valuation.priority, batch.priority, MOVED) if learns else None
        batch, terms = self._ranked(active, ask, batch, valuation)
        return Walked(ask, batch, terms, np.zeros(len(batch)), moved=moved)

    def _ranked(self, active: ActiveCrawl, ask: Ask, batch: Batch, valuation: Valuation) -> tuple[Batch, F64]:
        """Fill in estimates, value and score, best row first; with the terms of each row's score.

        The batch was made for this ask alone, so its own block is written into.
        """
        options = self.options
        _estimate(batch.estimated_ms, options.default_fetch_ms)
        _estimate(batch.estimated_bytes, options.default_bytes)
        batch.value[:], exploration = valuation.value, valuation.exploration
        free = np.isnan(batch.manual_priority).all()  # what a person wants goes before chance
        if active.explorer is not None and free:
            exploration = exploration + active.explorer.draw_bonus(batch, ask)
        scales = scoring.Scales(options.freshness_tau_s, slow_ms(active, options), options.heavy_bytes)
        facts, slow = active.sitemap_facts.of(batch.id), slow_hosts(active, batch.hosts, scales.slow_ms)
        refresher = active.refresher
        chance = None if refresher is None else refresher.chance_changed(batch.id, ask.at)
        terms, batch.score[:] = scoring.terms(batch, ask, active.weights, scales, exploration, facts, slow, chance)
        order = np.argsort(-batch.score, kind="stable")
        if refresher is not None:  # what is fetched again has been weighed against what is new: it goes first
            order = order[np.argsort(~refresher.is_brought(batch.id[order]), kind="stable")]
        return batch.take(order), terms.take(order, 0)

    async def _refused(self, ask: Ask, walked: Walked, filter_: Filter, gone: Mask) -> None:
        """A refusal may be for this answer, for now, for as long as a host is full or failing, or for good."""
        batch = walked.batch
        if filter_.refusal in ("defer", "either"):
            gone = gone & ~await self._deferred(ask, walked, cast("Defers", filter_), gone)
            if not gone.any():
                return
        walked.dropped[filter_.name] = int(np.count_nonzero(gone))
        if filter_.refusal in ("forbid", "either"):
            await self.store.drop(ask.crawl, batch.id[gone], filter_.name)
        if filter_.refusal == "shut":
            await self.store.drop(ask.crawl, batch.id[gone & cast("DropsSome", filter_).shut(batch)], filter_.name)
        if hasattr(filter_, "last") and len(last := batch.id[gone & cast("RanksSomeLast", filter_).last(batch)]):
            await self.store.rank(ask.crawl, last, np.full(len(last), LAST))
        if filter_.refusal == "withhold":
            await self._withhold(ask, batch, cast("Withholds", filter_).until(batch.hosts, ask))

    async def _deferred(self, ask: Ask, walked: Walked, filter_: Defers, gone: Mask) -> Mask:
        """Of the refused rows those that are for later; hosts with no other rows are not gathered before."""
        batch, wait = walked.batch, filter_.wait(walked.batch, ask)
        later: Mask = gone & ~np.isnan(wait)
        waiting = zip(batch.url[later].tolist(), wait[later].tolist(), strict=True)
        walked.deferred.extend((url, wait_s, filter_.name) for url, wait_s in waiting)
        # seconds until the first row of each host; NaN where some rows may go now
        soonest = np.full(len(batch.hosts.name), np.inf)
        np.minimum.at(soonest, batch.host[later], wait[later])
        soonest[batch.host[~later]] = np.nan
        soonest[np.isinf(soonest)] = np.nan
        await self._withhold(ask, batch, ask.at + soonest + getattr(filter_, "hold_back_s", 0.0))
        return later

    async def _withhold(self, ask: Ask, batch: Batch, until: F64) -> None:
        """Hosts that gave nothing are not gathered again before they may give something; NaN: not withheld."""
        held = np.flatnonzero(~np.isnan(until))
        if len(held):
            await self.store.withhold(ask.crawl, batch.hosts.name[held].tolist(), until[held])

    async def reserve(self, active: ActiveCrawl, ask: Ask, walked: Walked) -> Walked:
        """The promise: leases and host slots in one step; rows that another crawler got first drop out.

        Filters may have taken their time: a slot lies no earlier than now, or it would be told too late to be kept.
        """
        at = max(ask.at, self.clock.now())
        terms = lease_terms(active.definition.policy, ask, at)
        grants = await self.store.reserve(ask.crawl, walked.batch, terms)
        granted = replace(walked, start=grants.start, metadata=grants.metadata, at=at)
        if walked.moved is not None:  # not before: what sinks may be forgotten to make room
            await self.store.rank(ask.crawl, *walked.moved)
        return granted.take(np.flatnonzero(grants.outcome == GRANTED)) if np.count_nonzero(grants.outcome) else granted


def with_draw(active: ActiveCrawl, ask: Ask) -> Ask:
    """The ask with what the strategy draws for it."""
    return ask if active.explorer is None else replace(ask, draw=active.explorer.draw(ask, ask.budget.max_urls))


async def _prepared(filter_: Filter, batch: Batch, ask: Ask) -> Filter | None:
    """The filter for this batch of this ask; None: something came into the queues that goes before the batch."""
    return await cast("Prepares", filter_).prepared(batch, ask) if hasattr(filter_, "prepared") else filter_


def lease_s(ask: Ask) -> float:
    """How long an answer to this ask is promised."""
    return ask.budget.timeout_ms / 1_000 * LEASE_GRACE


def lease_terms(policy: Policy, ask: Ask, at: float) -> LeaseTerms:
    """Of a promise that is made now."""
    return LeaseTerms(
        crawler_id=ask.crawler_id,
        request_id=ask.request_id,
        at=at,
        lease_s=lease_s(ask),
        delay_s=policy.default_delay_s,
        horizon_s=min(policy.horizon_s, ask.budget.timeout_ms / 1_000),
        strict=policy.strict,
        factor=policy.delay_factor,
        limit=policy.max_leases_per_host,
    )


def slow_ms(active: ActiveCrawl, options: GuideOptions) -> float:
    """From here on a fetch takes long: as the crawl says, or has learned, or else as the operator says."""
    own = active.definition.policy.slow_domain_ms
    if own == AUTO:
        return active.profile.slow_ms if active.profile is not None else options.slow_ms
    return own or options.slow_ms


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
