"""The guide in this process: ask and tell over a store."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from crawlguide.core.errors import Conflict, MalformedRequest, UrlError
from crawlguide.core.messages import Ack, Advice, StatsMessage, check_version, digest
from crawlguide.core.telemetry import SILENT, happened
from crawlguide.core.types import Crawl
from crawlguide.guide import monitoring
from crawlguide.guide.ask import advice as answers
from crawlguide.guide.ask.advice import AnswerParts
from crawlguide.guide.ask.intake import asked
from crawlguide.guide.ask.pipeline import Pipeline, Walked, lease_s
from crawlguide.guide.ask.replay import pace_again
from crawlguide.guide.crawl.composition import StrategyDefaults
from crawlguide.guide.crawl.crawls import ActiveCrawls
from crawlguide.guide.crawl.hand_rules import edited
from crawlguide.guide.monitoring import BEST_SHOWN, Answered, Recent
from crawlguide.guide.robots.keeper import Keeper
from crawlguide.guide.tell.intake import seed_of
from crawlguide.guide.tell.telling import Telling
from crawlguide.policy import Services
from crawlguide.policy.rules.engine import Engine
from crawlguide.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.clock import Clock
    from crawlguide.core.config import Config
    from crawlguide.core.definition import Definition, HandRules, RulesEdit
    from crawlguide.core.messages import AskMessage, Fetch, ReportMessage, SeedsMessage
    from crawlguide.core.protocols import Store
    from crawlguide.core.telemetry import Telemetry
    from crawlguide.core.types import Ask
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl

DEFAULT_TENANT = "default"
ANSWER_KEPT_S = 600.0
REPORT_KEPT_S = 86_400.0
RENEWED_BY_AN_ASK = 100
SOON_MS, LATER_MS = 1_000, 60_000
Reply = TypeVar("Reply", Advice, Ack)


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
        self._telemetry = telemetry
        self.recent: defaultdict[Crawl, Recent] = defaultdict(Recent)
        self._queries = 0
        self._started = clock.now()

    # an ask

    async def ask(self, message: AskMessage, tenant: str = DEFAULT_TENANT) -> Advice:
        """What next? The same request id with the same body gives the same answer.

        An ask may tell and seed on its way.
        """
        check_version(message.mcp_version)
        ask = asked(message, tenant, self.clock.now())
        active = await self.crawls.get(ask.crawl, ask.at)
        history = message.context.recent_history if message.context else None
        advice = await self._replayed(ask.crawl, "ask", ask.request_id, ask.digest, Advice)
        if advice is None:
            if history:
                await self._take_fetches(active, ask.crawl, ask.crawler_id, history, ask.at)
            if ask.seeds:
                await self._telling.seed(active, ask.crawl, ask.seeds, ask.at)
            advice = await self._answer(active, ask)
            expires = ask.at + lease_s(ask) + ANSWER_KEPT_S
            await self._remember(ask.crawl, "ask", ask.request_id, ask.digest, advice, expires)
        elif advice.assigned_urls:
            await pace_again(self.store, active, ask, advice)
        await self.store.commit(durable=bool(ask.seeds or history))
        return advice

    async def _answer(self, active: ActiveCrawl, ask: Ask) -> Advice:
        """Walk the pipeline, if the crawl has anything to give; then say what came of it."""
        self._queries += 1
        most = await self._most_urls(active, ask)
        walked = await self._walk(active, replace(ask, budget=replace(ask.budget, max_urls=most))) if most > 0 else None
        await self.store.count(ask.crawl, {"asks": 1, "assigned": len(walked.batch) if walked else 0})
        parts = AnswerParts()
        if walked is not None:
            degraded = answers.degraded(active, ask, walked)
            parts = AnswerParts(answers.deferred(walked, ask), walked.dropped, degraded=degraded)
        monitoring.count_ask(self._telemetry, walked, parts.degraded[0])
        if walked is None or not len(walked.batch):
            parts = await self._why_nothing(active, ask, parts)
        else:
            if active.learner is not None:
                active.learner.assigned(walked.batch, walked.ask)
            urls = answers.assigned(active, walked, walked.at + lease_s(ask))
            self.recent[ask.crawl].answers.append(Answered(ask.at, ask.crawler_id, len(urls), urls[:BEST_SHOWN]))
            parts = replace(parts, urls=urls)
        return answers.advice(active, ask, parts, self._queries)

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
        self.crawls.note(ask.crawl, state)
        wait = await self.store.wait(ask.crawl, ask.at)
        leased = (await self.store.stats(ask.crawl))["leased"]
        longest = SOON_MS if leased or not wait else LATER_MS
        longest = min([longest, *(held.retry_after_ms for held in parts.deferred if held.reason == "robots")])
        retry_ms = longest if not wait else max(1, min(int(wait * 1_000) + 1, longest))
        return replace(parts, state="waiting" if state == "running" else state, retry_after_ms=retry_ms)

    # a tell

    async def tell(self, message: ReportMessage, tenant: str = DEFAULT_TENANT) -> Ack:
        """What happened. The same report told twice counts once."""
        check_version(message.mcp_version)
        at, crawl = self.clock.now(), Crawl(tenant, message.crawl_id)
        active = await self.crawls.get(crawl, at)
        body = digest(message) if message.report_id is not None else b""
        ack = await self._replayed(crawl, "tell", message.report_id, body, Ack)
        if ack is None:
            ack = await self._take_fetches(active, crawl, message.crawler_id, message.fetches, at)
            await self._remember(crawl, "tell", message.report_id, body, ack, at + REPORT_KEPT_S)
            self._telemetry.count("tells")
        await self.store.commit()  # also for a report that came before: its first answer may not have got that far
        return ack

    async def _take_fetches(
        self, active: ActiveCrawl, crawl: Crawl, crawler_id: str, fetches: Sequence[Fetch], at: float
    ) -> Ack:
        """What was fetched, however it came here; now and then it is a point of the harvest."""
        ack = await self._telling.tell(active, crawl, crawler_id, fetches, at)
        monitoring.count_tell(self._telemetry, fetches, ack)
        recent = self.recent[crawl]
        if recent.due(ack.accepted):
            numbers = await self.store.stats(crawl)
            recent.sample(numbers["fetches"], numbers["relevant"])
        return ack

    # the same request a second time

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

    async def seed(self, crawl: Crawl, message: SeedsMessage) -> int:
        """Add seeds; returns how many were new. A seed that nobody can fetch refuses them all, by name."""
        seeds = []
        for number, item in enumerate(message.urls):
            try:
                seeds.append(seed_of(item))
            except UrlError as wrong:
                where = f"urls[{number}]"
                raise MalformedRequest(f"{where}: {wrong.message}", field=where) from None
        at = self.clock.now()
        active = await self.crawls.get(crawl, at)
        new = await self._telling.seed(active, crawl, seeds, at)
        await self.store.commit()
        return new

    async def define(self, crawl: Crawl, definition: Definition) -> bool:
        """Create or replace a crawl; True if it is new."""
        new = await self.crawls.put(crawl, definition, self.clock.now())
        await self.store.commit()
        return new

    async def pause(self, crawl: Crawl, *, paused: bool) -> None:
        await self.crawls.pause(crawl, paused, self.clock.now())
        await self.store.commit()

    async def rules(self, crawl: Crawl) -> HandRules:
        """What people have banned and weighted."""
        return (await self.crawls.get(crawl, self.clock.now(), create=False)).record.definition.rules

    async def edit_rules(self, crawl: Crawl, edit: RulesEdit) -> HandRules:
        """Ban, lift and weigh; returns all rules that hold from now on."""
        definition = (await self.crawls.get(crawl, self.clock.now(), create=False)).record.definition
        new = msgspec.structs.replace(definition, rules=edited(definition.rules, edit))
        await self.define(crawl, new)
        return new.rules

    async def release(self, crawl: Crawl, crawler_id: str) -> int:
        """Everything that a crawler holds goes back; returns how many URLs that were."""
        at = self.clock.now()
        await self.crawls.get(crawl, at, create=False)
        await self.store.expire(crawl, at)
        released = await self.store.release(crawl, crawler_id)
        await self.store.commit()
        return released

    async def delete(self, crawl: Crawl) -> None:
        """Forget a crawl and all it holds."""
        await self.crawls.delete(crawl)
        self.recent.pop(crawl, None)
        await self.store.commit()

    async def stats(self, tenant: str = DEFAULT_TENANT, name: str | None = None) -> StatsMessage:
        """The numbers of all crawls, or of one, as of now: leases that have ended count no longer."""
        at, numbers = self.clock.now(), self.totals()
        for crawl in await self.crawls.names(tenant) if name is None else [Crawl(tenant, name)]:
            await self.crawls.get(crawl, at, create=False)
            await self.store.expire(crawl, at)
            numbers.crawls[crawl.name] = await self.crawls.stats(crawl, at)
        return numbers

    def totals(self) -> StatsMessage:
        """What is to be said of the guide itself, without its crawls."""
        return StatsMessage(__version__, self.clock.now() - self._started, self._queries, {})

    def listen(self, telemetry: Telemetry) -> None:
        """From now on say what happens to `telemetry`."""
        self._telemetry = telemetry
        self.store.listen(telemetry)

    async def upkeep(self) -> None:
        """What ends by itself, in every crawl of the default tenant: leases, answers, waits."""
        at = self.clock.now()
        await self.crawls.renew_all(at)
        await self.robots.upkeep()
        for crawl in await self.crawls.names(DEFAULT_TENANT):
            await self.store.expire(crawl, at)
            forgotten = await self.store.forget_old(crawl, at)
            if forgotten:
                happened("sweep", "crawl {crawl}: {urls} old URLs were forgotten", crawl=crawl.name, urls=forgotten)
        await self.store.commit()

    async def close(self) -> None:
        if self._rego is not None:
            await self._rego.close()
        await self.store.close()
