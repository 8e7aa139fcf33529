"""The crawls that run here: definitions checked, judges built, state told."""

from __future__ import annotations

import asyncio
import difflib
from bisect import bisect
from typing import TYPE_CHECKING

import msgspec

from crawlguide.core.definition import Definition
from crawlguide.core.errors import NotFound
from crawlguide.core.messages import CrawlStats
from crawlguide.core.telemetry import WARNING, happened
from crawlguide.core.types import Crawl
from crawlguide.guide.crawl import composition, notebooks, redefinition
from crawlguide.guide.crawl.active_crawl import ActiveCrawl, CrawlRecord, activate, inherit

if TYPE_CHECKING:
    from crawlguide.core.config import Config
    from crawlguide.core.protocols import Store
    from crawlguide.guide.crawl.composition import StrategyDefaults
    from crawlguide.policy import Services

RENEWED_AT_ONCE, PAGES_AT_ONCE = 250, 40  # URLs that are judged anew between others, and how often in a row
NAMES_COMPARED = 200  # with one that is not there


class ActiveCrawls:
    """Running crawls by name; one that nobody defined is created with defaults unless the operator says no."""

    def __init__(
        self,
        store: Store,
        config: Config,
        defaults: StrategyDefaults,
        services: Services,
        known: dict[Crawl, ActiveCrawl],
    ) -> None:
        self._store = store
        self._services = services
        self._config = config
        self._defaults = defaults
        self._kinds = composition.filter_kinds(config.guide.filters)
        self._revivable = frozenset(rule.name for rule in self._kinds if getattr(rule, "revivable", False))
        self.known = known  # those that were asked or told since this guide opened
        self._before: dict[Crawl, ActiveCrawl] = {}  # what was known before the store had to read all anew
        self._generation = 0  # of the store
        self._noted: dict[Crawl, str] = {}

    async def get(self, crawl: Crawl, at: float, create: bool = True) -> ActiveCrawl:
        await self._keep_up()
        active = self.known.get(crawl)
        if active is not None:
            return active
        stored = await self._store.crawl_get(crawl)
        if stored is not None:
            return await self._start(crawl, msgspec.json.decode(stored, type=CrawlRecord))
        if not (create and self._config.crawls.auto_create):
            raise await self._unknown(crawl)
        await self._begin(crawl, CrawlRecord(), at)
        return await self._start(crawl, CrawlRecord())

    async def put(self, crawl: Crawl, definition: Definition, at: float) -> bool:
        """Create or replace; True if it is new. A known frontier is judged anew by the new definition."""
        built = self._built(crawl, CrawlRecord(definition))  # refuses what cannot be built
        new = await self._store.crawl_get(crawl) is None
        old = None if new else await self.get(crawl, at)
        await notebooks.check(self._store, crawl, built, old)
        if old is None:
            await self._begin(crawl, CrawlRecord(definition), at)
            await self._start(crawl, CrawlRecord(definition))
            return True
        built.record = CrawlRecord(
            definition, old.record.paused, redefinition.states(old.record, definition, self._kinds)
        )
        same_weights = built.strategy.domain_weights == old.strategy.domain_weights
        if redefinition.same_judge(old.record.definition, definition) and same_weights:  # what it has learned stays
            built.strategy, built.learner, built.explorer = old.strategy, old.learner, old.explorer
            if built.judge is not None and old.judge is not None:
                built.judge.inherit(old.judge)
            await notebooks.newcomers(self._store, crawl, built, old)
        else:
            await notebooks.remember(self._store, crawl, built)
        inherit(built, old)
        self.known[crawl] = built
        await self._save(crawl, built.record, at)
        if old.record.definition != definition:
            await self._store.admit(crawl)  # hosts held back get a new hearing
            await redefinition.set_priorities(self._store, crawl, old, built)
            await self.renew(crawl, at, PAGES_AT_ONCE, RENEWED_AT_ONCE)
        happened("crawl_changed", "crawl {crawl} has a new definition", crawl=crawl.name, strategy=built.strategy.kind)
        _warn(crawl, definition)
        return False

    async def pause(self, crawl: Crawl, paused: bool, at: float) -> None:
        active = await self.get(crawl, at, create=False)
        active.record.paused = paused
        await self._save(crawl, active.record, at)
        if paused:
            happened("crawl_paused", "crawl {crawl} is paused", crawl=crawl.name)
        else:
            happened("crawl_resumed", "crawl {crawl} goes on", crawl=crawl.name)

    async def delete(self, crawl: Crawl) -> None:
        self.known.pop(crawl, None)
        self._before.pop(crawl, None)
        self._noted.pop(crawl, None)
        if not await self._store.crawl_delete(crawl):
            raise await self._unknown(crawl)
        happened("crawl_deleted", "crawl {crawl} was deleted with all it held", crawl=crawl.name)

    def note(self, crawl: Crawl, state: str) -> None:
        """An ask was given nothing in this state: the log is told once that the crawl has come to its end."""
        if state in ("finished", "exhausted") and self._noted.get(crawl) != state:
            happened("crawl_finished", "crawl {crawl} is {state}", crawl=crawl.name, state=state)
        self._noted[crawl] = state

    async def names(self, tenant: str) -> list[Crawl]:
        return await self._store.crawl_list(tenant)

    async def state(self, crawl: Crawl, active: ActiveCrawl, at: float) -> str:
        """running, waiting (something is leased or delayed), exhausted, paused or finished (a limit was reached)."""
        if active.record.paused:
            return "paused"
        left = await self.pages_left(crawl, active)
        wait = await self._store.wait(crawl, at)
        if active.until is not None and at >= active.until:
            return "finished"
        if left == 0:
            leased = (await self._store.stats(crawl))["leased"]
            return "waiting" if leased else "finished"
        if wait is None:
            return "exhausted"
        return "running" if wait == 0 else "waiting"

    async def pages_left(self, crawl: Crawl, active: ActiveCrawl) -> int | None:
        """How many more pages may be given out; None without a limit. What is on its way counts as fetched."""
        most = active.definition.limits.max_pages
        if not most:
            return None
        stats = await self._store.stats(crawl)
        return max(0, most - int(stats["fetches"] - stats["failed"] + stats["leased"]))

    async def stats(self, crawl: Crawl, at: float) -> CrawlStats:
        """As it lies there: nothing expires by looking."""
        active = await self.get(crawl, at, create=False)
        numbers = await self._store.stats(crawl)
        state = await self.state(crawl, active, at)
        learned = active.strategy.guarded.stats()
        return CrawlStats(state=state, strategy=active.strategy.kind, learner=learned, **numbers)

    async def _unknown(self, crawl: Crawl) -> NotFound:
        names = [known.name for known in await self.names(crawl.tenant)]
        first = max(0, bisect(names, crawl.name) - NAMES_COMPARED // 2)  # of very many those that begin alike
        near = difflib.get_close_matches(crawl.name, names[first : first + NAMES_COMPARED], 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return NotFound(f"crawl_id: no crawl named {crawl.name!r}{hint}", field="crawl_id")

    async def _start(self, crawl: Crawl, record: CrawlRecord) -> ActiveCrawl:
        built = self._built(crawl, record, opening=True)
        await notebooks.remember(self._store, crawl, built)
        if crawl in self._before:
            inherit(built, self._before.pop(crawl))
        self.known[crawl] = built
        return built

    async def _keep_up(self) -> None:
        """What was built on a store that has read all anew since may have learned what nobody knows any more."""
        generation = await self._store.generation()
        if generation != self._generation:
            self._generation = generation
            self._before.update(self.known)
            self.known.clear()

    def _built(self, crawl: Crawl, record: CrawlRecord, opening: bool = False) -> ActiveCrawl:
        """One that was there before is opened without what cannot be built any more, as a plugin that is gone."""
        chosen = composition.chosen(record.definition, self._defaults)
        definition = self._config.select.over(record.definition, chosen)
        strategy = composition.strategy(definition, self._defaults, crawl.name, opening=opening)
        return activate(record, definition, self._config.guide.filters, strategy, self._services, self._revivable)

    async def _begin(self, crawl: Crawl, record: CrawlRecord, at: float) -> None:
        """Written at once: a store that has to read its folder anew in the middle of a request still knows it."""
        await self._save(crawl, record, at)
        await self._store.commit(durable=False)
        kind = str(composition.chosen(record.definition, self._defaults).get("kind", "layered"))
        happened("crawl_created", "crawl {crawl} was created", crawl=crawl.name, strategy=kind)
        _warn(crawl, record.definition)

    async def _save(self, crawl: Crawl, record: CrawlRecord, at: float) -> None:
        await self._store.crawl_put(crawl, msgspec.json.encode(record), at)

    async def renew(self, crawl: Crawl, at: float, pages: int, most: int) -> None:
        """Judge some more of what is known by a definition that came later; others are served between the pages."""
        for page in range(pages):
            if page:
                await asyncio.sleep(0)
            active = self.known.get(crawl)
            if active is None or not active.record.renew:
                return
            if await redefinition.step(self._store, crawl, active, self._kinds, most):
                await self._save(crawl, active.record, at)

    async def renew_all(self, at: float) -> None:
        await self._keep_up()
        for crawl, active in list(self.known.items()):
            if active.record.renew:
                await self.renew(crawl, at, PAGES_AT_ONCE, RENEWED_AT_ONCE)


def _warn(crawl: Crawl, definition: Definition) -> None:
    """Whoever ignores robots.txt is named in the log."""
    policy = definition.policy
    if policy.robots == "ignore" or policy.robots_exceptions:
        where = "everywhere" if policy.robots == "ignore" else ", ".join(policy.robots_exceptions[:10])
        happened("robots_ignored", "crawl {crawl} ignores robots.txt: {where}", WARNING, crawl=crawl.name, where=where)
