"""The guide in this process: ask and tell over a store."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from crawlguide.core.aside import aside
from crawlguide.core.bounded import Bounded
from crawlguide.core.errors import Conflict, CrawlGuideError, MalformedRequest, TooLarge, UrlError
from crawlguide.core.messages import (
    DEFAULT_TENANT,
    VERSION,
    Ack,
    Advice,
    Fetch,
    ReportMessage,
    StatsMessage,
    check_version,
    digest,
)
from crawlguide.core.outcomes import RELEASED
from crawlguide.core.telemetry import SILENT, happened
from crawlguide.core.turns import LONG_BYTES, LONG_ROWS, between_steps, in_turns, let_others, make_way
from crawlguide.core.types import Crawl
from crawlguide.core.watching import NOBODY
from crawlguide.guide import monitoring
from crawlguide.guide.ask import advice as answers
from crawlguide.guide.ask.advice import AnswerParts
from crawlguide.guide.ask.intake import asked
from crawlguide.guide.ask.pipeline import Pipeline, Walked, lease_s
from crawlguide.guide.ask.replay import pace_again
from crawlguide.guide.containment import contained
from crawlguide.guide.crawl.active_crawl import CrawlRecord
from crawlguide.guide.crawl.composition import StrategyDefaults
from crawlguide.guide.crawl.crawls import ActiveCrawls
from crawlguide.guide.crawl.hand_rules import edited, has_patterns
from crawlguide.guide.crawl.transfer import deletions
from crawlguide.guide.monitoring import BEST_SHOWN, Answered, Recent
from crawlguide.guide.robots.keeper import Keeper
from crawlguide.guide.tell.groups import TellGroups, Told, nothing_more, read_together
from crawlguide.guide.tell.intake import seed_of
from crawlguide.guide.tell.portions import joined, portions
from crawlguide.guide.tell.telling import Telling, TellTerms
from crawlguide.guide.under_way import ENDS_WITHIN_S, UnderWay
from crawlguide.policy import Services
from crawlguide.policy.rules.engine import Engine
from crawlguide.version import __version__

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence

    from crawlguide.core.clock import Clock
    from crawlguide.core.config import Config
    from crawlguide.core.definition import Definition, HandRules, RulesEdit
    from crawlguide.core.messages import AskMessage, Assigned, SeedsMessage
    from crawlguide.core.protocols import Store
    from crawlguide.core.telemetry import Telemetry
    from crawlguide.core.types import Ask, Seed
    from crawlguide.core.watching import Watcher
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl

ANSWER_KEPT_S = 600.0
REPORT_KEPT_S = 86_400.0
SEEDS_AT_ONCE = 200
RENEWED_BY_AN_ASK = 100
TRIES = 3  # of an ask in whose middle the crawl is defined anew
WRITTEN_AT_ONCE = 1_000  # URLs of an answer
RETURNED_AT_ONCE = 500  # leases
ANSWERS_GIVEN_AGAIN = 10_000
TENANTS_COUNTED = 10_000  # tokens may name any number of them
RECENT_CRAWLS = 1_000  # of which newest answers and harvest are shown
KEPT_UP, AT_ONCE = 500, 20  # crawls at each upkeep; others are served in between
SOON_MS, LATER_MS = 1_000, 60_000
Reply = TypeVar("Reply", Advice, Ack)


def always() -> bool:
    return True


class LocalGuide:
    """Decides here. Time and chance come in as arguments: one seed and one clock give one history."""

    def __init__(
        self, store: Store, config: Config, clock: Clock, seed: int = 0, telemetry: Telemetry = SILENT
    ) -> None:
        self.clock = clock
        self.store = store
        options, active = config.guide, dict[Crawl, "ActiveCrawl"]()
        self._rego = Engine(Path(options.rules), options.rules_timeout_ms / 1_000) if options.rules else None
        self.robots = Keeper(store, clock, active)
        defaults = StrategyDefaults(seed, config.crawls.plugins, config.predict, options.predict_budget_ms, clock.now)
        self.crawls = ActiveCrawls(store, config, defaults, Services(self.robots, self._rego), active)
        self.pipeline = Pipeline(store, options, clock)
        self._telling = Telling(store, self.robots)
        self.tells = TellGroups(self._take_group)
        self._telemetry = telemetry
        self._watcher: Watcher = NOBODY
        self.recent = Bounded[Crawl, Recent](RECENT_CRAWLS)
        self.on_deleted: list[Callable[[Crawl], None]] = [self.robots.forget]  # are told of every crawl that is deleted
        self._queries = Bounded[str, int](TENANTS_COUNTED)  # by tenant
        self.copying = asyncio.Lock()  # the folder is copied once at a time: each copy takes memory and a moment
        self._under_way = UnderWay()
        self._leaving: set[asyncio.Future[None]] = set()  # answers that nobody waits for are given back
        self._given_again = Bounded[tuple[Crawl, str | None], None](ANSWERS_GIVEN_AGAIN)  # by request ids
        self._started = clock.now()

    # an ask

    async def ask(
        self,
        message: AskMessage,
        tenant: str = DEFAULT_TENANT,
        *,
        create: bool = True,
        trains: bool = True,
        is_awaited: Callable[[], bool] = always,
    ) -> Advice:
        """What next? The same request id with the same body gives the same answer.

        An ask may tell and seed on its way. An answer for which nobody waits any more is withdrawn, before the same ask
        can come again.
        """
        check_version(message.mcp_version)

        async def work() -> Advice:
            advice = await self._ask(message, tenant, create, trains)
            if not is_awaited():
                await self._take_back(message, advice, tenant)
            return advice

        if message.request_id is None and message.budget.max_urls > LONG_ROWS:
            return await self._answered_or_withdrawn(message, tenant, work)
        return await self._once(Crawl(tenant, message.crawl_id), "ask", message.request_id, work)

    async def _answered_or_withdrawn(
        self, message: AskMessage, tenant: str, work: Callable[[], Coroutine[Any, Any, Advice]]
    ) -> Advice:
        """Others are served while a long answer is written. If nobody waits for it by then, all of it waits again."""
        task = asyncio.ensure_future(work())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._leaving.add(leaving := asyncio.ensure_future(self._withdrawn(message, tenant, task)))
            leaving.add_done_callback(self._leaving.discard)
            raise

    async def _withdrawn(self, message: AskMessage, tenant: str, answering: asyncio.Task[Advice]) -> None:
        with suppress(CrawlGuideError):  # where there is no answer, or no crawl any more, nothing is held
            await self.withdraw(message, await answering, tenant)

    async def withdraw(self, message: AskMessage, advice: Advice, tenant: str = DEFAULT_TENANT) -> None:
        """An answer reached nobody. It stays where the same ask has come again, and was given it, meanwhile."""
        crawl, request_id = Crawl(tenant, message.crawl_id), message.request_id

        async def work() -> Advice:
            if (crawl, request_id) not in self._given_again:
                await self._take_back(message, advice, tenant)
            return advice

        await self._once(crawl, "ask", request_id, work)

    async def _take_back(self, message: AskMessage, advice: Advice, tenant: str) -> None:
        """What was assigned waits again, and the same ask gets a new answer."""
        urls = [one.url for one in advice.assigned_urls]
        request_ids = () if message.request_id is None else (message.request_id,)
        await self.give_back(Crawl(tenant, message.crawl_id), message.crawler_id, urls, request_ids)

    async def give_back(
        self, crawl: Crawl, crawler_id: str, urls: Sequence[str], request_ids: Iterable[str] = ()
    ) -> None:
        """Return leases unjudged. The answers that gave them must not be given again, since nothing is held by them."""
        for request_id in request_ids:
            await self.store.answer_put(crawl, f"ask:{request_id}", b"", self.clock.now())
        async for some in in_turns(urls, RETURNED_AT_ONCE):
            fetches = [Fetch(url, error=RELEASED) for url in some]
            await self.tell(ReportMessage(VERSION, crawler_id, fetches, crawl.name), crawl.tenant, create=False)

    async def _ask(self, message: AskMessage, tenant: str, create: bool, trains: bool) -> Advice:
        ask = await asked(message, tenant, self.clock.now())
        history = message.context.recent_history if message.context else None
        held = self.crawls.held if history or ask.seeds else self.crawls.held_to_ask
        async with held(ask.crawl, ask.at, create) as active:
            return await self._advice(active, ask, history, trains)

    async def _advice(self, active: ActiveCrawl, ask: Ask, history: Sequence[Fetch] | None, trains: bool) -> Advice:
        advice = await self._replayed(ask.crawl, "ask", ask.request_id, ask.digest, Advice)
        is_new, ack = advice is None, None
        if advice is None:
            if history:
                ack = await self._take_history(ask, history, trains)
            if ask.seeds:
                with suppress(TooLarge):  # the crawler gets what there is
                    await self._take_seeds(ask.crawl, ask.seeds, ask.at)
            if history or ask.seeds:  # it may have another definition by now
                await let_others()
                active = await self.crawls.get(ask.crawl, ask.at, create=False)
            advice = await self._answer(active, ask)
            await between_steps(len(advice.assigned_urls))
            expires = ask.at + lease_s(ask) + ANSWER_KEPT_S
            await self._remember(ask.crawl, "ask", ask.request_id, ask.digest, advice, expires)
            await between_steps(len(advice.assigned_urls))
        elif advice.assigned_urls:
            self._given_again[ask.crawl, ask.request_id] = None
            await pace_again(self.store, active, ask, advice)
        await self.store.commit(durable=bool(ask.seeds or history))
        if history and ack is not None:
            self._watcher.fetched(ask.crawl, ask.crawler_id, history, ack, ask.at)
        if is_new:
            self._watcher.decided(ask.crawl, ask.crawler_id, advice, ask.at)
        return advice

    async def _answer(self, active: ActiveCrawl, ask: Ask) -> Advice:
        """Walk the pipeline, if the crawl has anything to give; then say what came of it."""
        self._queries[ask.crawl.tenant] = self._queries.get(ask.crawl.tenant, 0) + 1
        active, walked = await self._walked(active, ask)
        await self.store.count(ask.crawl, {"asks": 1, "assigned": len(walked.batch) if walked else 0})
        parts = AnswerParts()
        if walked is not None:
            degraded = answers.degraded(active, ask, walked)
            parts = AnswerParts(answers.deferred(walked, ask), walked.dropped, degraded=degraded)
        monitoring.count_ask(self._telemetry, ask.crawl.tenant, walked, parts.degraded[0])
        if walked is None or not len(walked.batch):
            parts = await self._why_nothing(active, ask, parts)
        else:
            if active.learner is not None:
                active.learner.assigned(walked.batch, walked.ask)
            urls = await self._assigned(active, walked, walked.at + lease_s(ask))
            self._recent_of(ask.crawl).answers.append(Answered(ask.at, ask.crawler_id, len(urls), urls[:BEST_SHOWN]))
            parts = replace(parts, urls=urls)
        return answers.advice(active, ask, parts, self._queries.get(ask.crawl.tenant, 0))

    async def _assigned(self, active: ActiveCrawl, walked: Walked, expires: float) -> list[Assigned]:
        """What was promised, as it is said on the wire; of very much some at a time."""
        if len(walked.batch) <= LONG_ROWS:
            return answers.assigned(active, walked, expires)
        await let_others()
        parts = in_turns(range(len(walked.batch)), WRITTEN_AT_ONCE)
        return [url async for rows in parts for url in answers.assigned(active, walked.take(np.array(rows)), expires)]

    async def _walked(self, active: ActiveCrawl, ask: Ask) -> tuple[ActiveCrawl, Walked | None]:
        """What is promised to whoever asks, by the definition that holds when it is promised; None: the crawl rests.

        Asks of one crawl come one after the other. A tell, a pause or a new definition may come in the middle of a
        long one, so what it may hold is looked at again before anything is promised.
        """
        if self.crawls.is_shared(active):
            return active, None
        async with active.asking:
            for _ in range(TRIES):
                active = await self.crawls.current(ask.crawl, active, ask.at)
                most = await self._most_urls(active, ask)
                if most <= 0:
                    break
                walked = await self._walk(active, ask.limited(most))
                most = await self._most_urls(active, ask)
                if self.crawls.is_current(ask.crawl, active) and most > 0:
                    return active, await self.pipeline.reserve(active, ask, walked.first(most))
        return active, None

    async def _walk(self, active: ActiveCrawl, ask: Ask) -> Walked:
        if active.record.renew:  # where nobody calls `upkeep`, those who ask bring it to its end
            await self.crawls.renew(ask.crawl, ask.at, 1, RENEWED_BY_AN_ASK)
        return await self.pipeline.walk(active, ask)

    async def _most_urls(self, active: ActiveCrawl, ask: Ask) -> int:
        """How many URLs this answer may hold: as the crawler wants, the crawl has left and its policy permits.

        0 where the crawl rests: paused, past its end, or out of pages.
        """
        if active.record.paused or (active.until is not None and ask.at >= active.until):
            return 0
        left = await self.crawls.pages_left(ask.crawl, active)
        if left == 0:  # unless some of what was given out never came back
            await self.store.expire(ask.crawl, ask.at)
            left = await self.crawls.pages_left(ask.crawl, active)
        bounds, most = active.crawlers.bounds_of(ask.crawler_id), [ask.budget.max_urls]
        if left is not None:
            most.append(left)
        if bounds.max_urls:
            most.append(bounds.max_urls)
        if bounds.max_leases:
            most.append(bounds.max_leases - await self.store.held(ask.crawl, ask.crawler_id, ask.at))
        return min(most)

    async def _why_nothing(self, active: ActiveCrawl, ask: Ask, parts: AnswerParts) -> AnswerParts:
        """Nothing to give is not an error: say why, and when to come back."""
        state = await self.crawls.state(ask.crawl, active, ask.at)
        below = answers.held_below(active, parts) if state == "running" else None
        wait = await self.store.wait(ask.crawl, ask.at, changes=below is not None)
        if below is not None and wait is None:  # and nothing is under way that could make it rise
            state, parts = "exhausted", replace(parts, exhausted_why=below)
        self.crawls.note(ask.crawl, state)
        leased = (await self.store.stats(ask.crawl))["leased"]
        longest = SOON_MS if leased or not wait else LATER_MS
        longest = min([longest, *(held.retry_after_ms for held in parts.deferred if held.reason == "robots")])
        retry_ms = longest if not wait else max(1, min(int(wait * 1_000) + 1, longest))
        return replace(parts, state="waiting" if state == "running" else state, retry_after_ms=retry_ms)

    # a tell

    async def tell(
        self, message: ReportMessage, tenant: str = DEFAULT_TENANT, *, create: bool = True, trains: bool = True
    ) -> Ack:
        """What happened. The same report told twice counts once.

        Whoever must not `create` a crawl may not find it. Without `trains`, fetches that were never assigned are
        recorded and teach nothing.
        """
        check_version(message.mcp_version)
        crawl = Crawl(tenant, message.crawl_id)
        work = partial(self._tell, message, crawl, create, trains)
        return await self._once(crawl, "tell", message.report_id, work)

    async def _tell(self, message: ReportMessage, crawl: Crawl, create: bool, trains: bool) -> Ack:
        at = self.clock.now()
        async with self.crawls.held(crawl, at, create):
            return await self._ack(message, crawl, at, trains)

    async def _ack(self, message: ReportMessage, crawl: Crawl, at: float, trains: bool) -> Ack:
        body = digest(message) if message.report_id is not None else b""
        ack = await self._replayed(crawl, "tell", message.report_id, body, Ack)
        if ack is None:
            ack = await self._take_report(message, crawl, body, trains)
            self._telemetry.count("tells", tenant=crawl.tenant)
            self._watcher.fetched(crawl, message.crawler_id, message.fetches, ack, at)
        else:
            await self.store.commit()  # its first answer may not have got that far
        return ack

    async def _take_report(self, message: ReportMessage, crawl: Crawl, body: bytes, trains: bool) -> Ack:
        """Portion by portion, each with those of others that wait; with its last one the report is known by its id.

        Others are served between the portions, so a crawl may have another definition with each of them.
        """
        acks: list[Ack] = []

        async def known(ack: Ack) -> None:
            whole, expires = joined([*acks, ack]), self.clock.now() + REPORT_KEPT_S
            await self._remember(crawl, "tell", message.report_id, body, whole, expires)

        left = len(message.fetches)
        for fetches in portions(message.fetches, message.report_id):
            left -= len(fetches)
            told = Told(message.crawler_id, fetches, nothing_more if left else known, is_last=not left)
            acks.append(await self.tells.taken(crawl, told, trains))
        return joined(acks)

    async def _take_history(self, ask: Ask, history: Sequence[Fetch], trains: bool) -> Ack:
        """The same of what an ask tells: it waits for its turn among tells."""
        told = (Told(ask.crawler_id, fetches) for fetches in portions(history, ask.request_id))
        return joined([await self.tells.taken(ask.crawl, one, trains) for one in told])

    async def _take_group(self, crawl: Crawl, group: Sequence[Told], trains: bool) -> Sequence[Ack]:
        """Written together; and on the disk where a report is complete."""
        acks = await self._take(crawl, group, trains)
        await self.store.commit(durable=any(told.is_last for told in group))
        return acks

    async def _take(self, crawl: Crawl, group: Sequence[Told], trains: bool) -> Sequence[Ack]:
        """Tells of one crawl in one pass, each with its own acknowledgement; now and then a point of the harvest."""
        at, fetches = self.clock.now(), [fetch for told in group for fetch in told.fetches]
        async with self.crawls.held(crawl, at, create=False) as active:  # whoever tells may be gone meanwhile
            report = await read_together(group, fetches, crawl, at, active.intake)
            terms = TellTerms(trains, grows=await self.crawls.quotas.has_room(crawl.tenant))
            acks = await self._telling.tell(active, report, fetches, [len(told.fetches) for told in group], terms)
        for told, ack in zip(group, acks, strict=True):
            self.crawls.quotas.grew(crawl.tenant, ack.discovered)
            monitoring.count_tell(self._telemetry, crawl.tenant, told.fetches, ack)
            await told.then(ack)
        recent = self._recent_of(crawl)
        if recent.due(sum(ack.accepted for ack in acks)):
            numbers = await self.store.stats(crawl)
            recent.sample(numbers["fetches"], numbers["relevant"])
        return acks

    def _recent_of(self, crawl: Crawl) -> Recent:
        recent = self.recent[crawl] = self.recent.get(crawl) or Recent()
        return recent

    # the same request a second time

    async def _once(self, crawl: Crawl, verb: str, name: str | None, work: Callable[[], Awaitable[Reply]]) -> Reply:
        """The same id, come again while it is being answered, waits for that answer."""
        return await (work() if name is None else self._under_way.alone((crawl, verb, name), work))

    async def _replayed(
        self, crawl: Crawl, verb: str, name: str | None, digest: bytes, kind: type[Reply]
    ) -> Reply | None:
        """The stored answer of an id that came before with the same body."""
        if name is None:
            return None
        stored = await self.store.answer_get(crawl, f"{verb}:{name}", self.clock.now())
        if stored is None:
            return None
        if not stored.startswith(digest):
            field = "request_id" if verb == "ask" else "report_id"
            raise Conflict(f"{field}: {name!r} came before with another body; use a new id", field=field)
        return msgspec.json.decode(stored[len(digest) :], type=kind)

    async def _remember(
        self, crawl: Crawl, verb: str, name: str | None, digest: bytes, reply: Reply, expires: float
    ) -> None:
        if name is not None:
            await self.store.answer_put(crawl, f"{verb}:{name}", digest + msgspec.json.encode(reply), expires)

    # what people do with crawls

    async def seed(self, crawl: Crawl, message: SeedsMessage, create: bool = True) -> int:
        """Add seeds; returns how many were new. A seed that nobody can fetch refuses them all, by name."""
        seeds: list[Seed] = []
        async for some in in_turns(message.urls, SEEDS_AT_ONCE):
            for item in some:
                try:
                    seeds.append(seed_of(item))
                except UrlError as wrong:
                    where = f"urls[{len(seeds)}]"
                    raise MalformedRequest(f"{where}: {wrong.message}", field=where) from None
        at = self.clock.now()
        async with self.crawls.held(crawl, at, create):
            new = await self._take_seeds(crawl, seeds, at)
        await self.store.commit()
        return new

    async def _take_seeds(self, crawl: Crawl, seeds: Sequence[Seed], at: float) -> int:
        """Add seeds, some at a time; returns how many were new. Raises `TooLarge` once the tenant has no room."""
        new = 0
        for first in range(0, len(seeds), SEEDS_AT_ONCE):
            if first:
                await self._commit_portion()
            await self.crawls.quotas.check_room(crawl.tenant)
            active = await self.crawls.get(crawl, at, create=False)
            fresh = await self._telling.seed(active, crawl, seeds[first : first + SEEDS_AT_ONCE], at)
            self.crawls.quotas.grew(crawl.tenant, fresh)
            new += fresh
        return new

    async def _commit_portion(self) -> None:
        """Between two portions: what there is so far is written, so that no commit has very much to write at once."""
        await self.store.commit(durable=False)
        await let_others()

    async def define(self, crawl: Crawl, definition: Definition) -> bool:
        """Create or replace a crawl; True if it is new."""
        return await self._under_way.alone((crawl, "define", ""), partial(self._define, crawl, definition))

    async def _define(self, crawl: Crawl, definition: Definition, deleted: Collection[Crawl] | None = None) -> bool:
        new = await self.crawls.put(crawl, definition, self.clock.now(), deleted)
        await self.store.commit()
        return new

    async def redefine(self, crawl: Crawl, change: Callable[[Definition], Awaitable[Definition]]) -> Definition:
        """Define a crawl by what `change` makes of its definition. Nobody else changes it meanwhile."""
        return await self._under_way.alone((crawl, "define", ""), partial(self._redefine, crawl, change))

    async def _redefine(self, crawl: Crawl, change: Callable[[Definition], Awaitable[Definition]]) -> Definition:
        with deletions(self) as deleted:
            new = await change((await self.crawls.outline(crawl, self.clock.now())).record.definition)
            await self._define(crawl, new, deleted)
        return new

    async def pause(self, crawl: Crawl, *, paused: bool) -> None:
        await self.crawls.pause(crawl, paused, self.clock.now())
        await self.store.commit()

    async def rules(self, crawl: Crawl) -> HandRules:
        """What people have banned and weighted."""
        return (await self.crawls.get(crawl, self.clock.now(), create=False)).record.definition.rules

    async def edit_rules(self, crawl: Crawl, edit: RulesEdit) -> HandRules:
        """Ban, lift and weigh; returns all rules that hold from now on."""

        async def change(old: Definition) -> Definition:
            long = len(msgspec.json.encode((old.rules, edit))) > LONG_BYTES or has_patterns(edit)
            rules = await aside(edited, old.rules, edit) if long else edited(old.rules, edit)
            return msgspec.structs.replace(old, rules=rules)

        return (await self.redefine(crawl, change)).rules

    async def release(self, crawl: Crawl, crawler_id: str) -> int:
        """Everything that a crawler holds goes back; returns how many URLs that were."""
        at = self.clock.now()
        await self.crawls.check(crawl)
        await self.store.expire(crawl, at)
        released = await self.store.release(crawl, crawler_id)
        await self.store.commit()
        return released

    async def delete(self, crawl: Crawl) -> None:
        """Forget a crawl and all it holds."""
        await self.crawls.delete(crawl)
        self.recent.pop(crawl, None)
        for forget in self.on_deleted:
            forget(crawl)
        await let_others()  # who find no such crawl from here on; its name may be used again
        await self.store.commit()

    async def definition(self, crawl: Crawl) -> Definition | None:
        """What a crawl says itself; None: there is none of that name."""
        stored = await self.store.crawl_get(crawl)
        if stored is None:
            return None
        definition = msgspec.json.decode(stored, type=CrawlRecord).definition
        await make_way(len(stored))
        return definition

    async def stats(
        self, tenant: str = DEFAULT_TENANT, name: str | None = None, crawls: Sequence[Crawl] | None = None
    ) -> StatsMessage:
        """The numbers of all crawls, of some or of one, as of now: leases that have ended count no longer."""
        at, numbers = self.clock.now(), self.totals(tenant)
        if name is not None:
            await self.crawls.check(Crawl(tenant, name))
            crawls = [Crawl(tenant, name)]
        for number, crawl in enumerate(await self.crawls.names(tenant) if crawls is None else crawls):
            await _between_crawls(number)
            if await self.store.crawl_get(crawl) is not None:  # else it was deleted meanwhile
                await self.store.expire(crawl, at)
                numbers.crawls[crawl.name] = await self.crawls.stats(crawl, at)
        return numbers

    def totals(self, tenant: str = DEFAULT_TENANT) -> StatsMessage:
        """What is to be said of the guide itself, without its crawls."""
        return StatsMessage(__version__, self.clock.now() - self._started, self._queries.get(tenant, 0), {})

    def listen(self, telemetry: Telemetry) -> None:
        """From now on say what happens to `telemetry`."""
        self._telemetry = self.robots.telemetry = telemetry
        self.store.listen(telemetry)

    def watch(self, watcher: Watcher) -> None:
        """From now on tell `watcher` of every decision, every fetch and every change of a crawl."""
        self._watcher = self.crawls.watcher = watcher

    async def upkeep(self) -> None:
        """What ends by itself, in the crawls of every tenant: leases, answers, waits. Of very many some at a time."""
        at = self.clock.now()
        await self.crawls.renew_all(at)
        with contained("robots.txt files"):
            await self.robots.upkeep()
        for number, crawl in enumerate(await self.store.crawl_turns(KEPT_UP)):
            await _between_crawls(number)
            if await self.store.crawl_get(crawl) is not None:
                with contained(f"crawl {crawl.name} of tenant {crawl.tenant}"):
                    await self._keep_up(crawl, at)
        await self.store.commit()

    async def _keep_up(self, crawl: Crawl, at: float) -> None:
        await self.store.expire(crawl, at)
        forgotten = await self.store.forget_old(crawl, at)
        if forgotten:
            happened("sweep", "crawl {crawl}: {urls} old URLs were forgotten", **crawl.logged, urls=forgotten)

    async def close(self) -> None:
        await self._under_way.end()
        await self.tells.end()
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=ENDS_WITHIN_S)
        if self._rego is not None:
            await self._rego.close()
        await self.store.close()


async def _between_crawls(number: int) -> None:
    """Now and then in a long row of crawls others are served."""
    if number % AT_ONCE == AT_ONCE - 1:
        await let_others()
