"""The crawls that run here: definitions checked, judges built, state told.

A crawl is loaded when it is first used, with all its judges. Of too many the one that was used the longest ago is
unloaded: what it has learned lies in its notebook, and what filters know besides is left with the store until it is
loaded again. One that was merely asked and holds nothing has no judges of its own at all.
"""

from __future__ import annotations

import asyncio
import difflib
from bisect import bisect
from collections import Counter
from collections.abc import Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from crawlguide.core import compiling
from crawlguide.core.aside import aside
from crawlguide.core.bounded import Bounded
from crawlguide.core.clock import milliseconds
from crawlguide.core.definition import Definition, pattern_lists
from crawlguide.core.errors import NotFound, RateLimited
from crawlguide.core.messages import CrawlStats
from crawlguide.core.patterns import check_budget
from crawlguide.core.telemetry import WARNING, happened
from crawlguide.core.turns import LONG_BYTES, let_others, make_way
from crawlguide.core.types import Crawl
from crawlguide.core.watching import NOBODY
from crawlguide.guide.containment import contained
from crawlguide.guide.crawl import composition, first_use, notebooks, redefinition
from crawlguide.guide.crawl.active_crawl import (
    BLANK,
    ActiveCrawl,
    CrawlRecord,
    Outline,
    activate,
    ends_at,
    inherit,
)
from crawlguide.guide.crawl.quotas import Quotas
from crawlguide.guide.under_way import UnderWay
from crawlguide.policy.robots import Robots
from crawlguide.policy.scope import check_names

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterator

    from crawlguide.core.config import Config
    from crawlguide.core.protocols import Store
    from crawlguide.core.watching import Watcher
    from crawlguide.guide.crawl.active_crawl import Outlined
    from crawlguide.guide.crawl.composition import StrategyDefaults
    from crawlguide.policy import Services

RENEWED_AT_ONCE, PAGES_AT_ONCE = 250, 40  # URLs that are judged anew between others, and how often in a row
NAMES_COMPARED, LONGEST_COMPARED = 200, 40  # with one that is not there; to compare long ones takes milliseconds
RESTED = "rested"  # a state whose version is when the crawl was unloaded
NO_CRAWL = Crawl("", "")
NOTED = 10_000  # crawls of which something is remembered that can be done without
TENANTS_NOTED = 1_000  # tokens may name any number of them
ROOM_AGAIN_S = 60.0  # after which somebody may have defined or deleted crawls that were created automatically


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
        self.quotas = Quotas(store, config.tenant)
        self._services = services
        self._config = config
        self._defaults = defaults
        self.watcher: Watcher = NOBODY
        self._kinds = composition.filter_kinds(config.guide.filters)
        self._revivable = frozenset(rule.name for rule in self._kinds if getattr(rule, "revivable", False))
        self._most = config.crawls.max_loaded
        self.known = known  # those that are loaded, the one that was used last at the end
        self._before = Bounded[Crawl, ActiveCrawl](self._most)  # known before the store had to read all anew
        self._holders: Counter[Crawl] = Counter()  # requests that are under way
        self._leaving: dict[Crawl, asyncio.Event] = {}  # of crawls that were deleted meanwhile: set by the last one
        self._generation = 0  # of the store
        self._opened = defaults.now()
        self._noted = Bounded[Crawl, str](NOTED)
        self._learned = Bounded[Crawl, Mapping[str, float]](NOTED)  # by crawls that were unloaded, in numbers
        self._undefined = Bounded[str, set[Crawl]](TENANTS_NOTED)  # by tenant: crawls that were created automatically
        self._loading = UnderWay()
        self._strategies = compiling.strategies_at_start(config)  # those that are loaded when they are used first
        self._blank: ActiveCrawl | None = None  # stands for all that nobody defined and that hold nothing

    async def get(self, crawl: Crawl, at: float, create: bool = True) -> ActiveCrawl:
        await self._keep_up()
        active = self.known.pop(crawl, None)
        if active is not None:
            self.known[crawl] = active
            return active
        stored = await self._stored(crawl, at, create)
        record = msgspec.json.decode(stored, type=CrawlRecord)
        if is_long(record) or self._new_strategies(record):
            return await self._loading.alone((crawl, "load", ""), lambda: self._load(crawl, at))
        return await self._start(crawl, self._built(crawl, record, opening=True))

    async def _load(self, crawl: Crawl, at: float) -> ActiveCrawl:
        """A crawl that takes long to build; meanwhile it may be loaded by others, defined anew or deleted."""
        while crawl not in self.known:
            stored = await self._stored(crawl, at, create=False)
            record = msgspec.json.decode(stored, type=CrawlRecord)
            await self._load_strategies(record)
            built = await aside(self._built, crawl, record, opening=True)
            if crawl not in self.known and await self._store.crawl_get(crawl) == stored:
                return await self._start(crawl, built)
        return self.known[crawl]

    @asynccontextmanager
    async def held(self, crawl: Crawl, at: float, create: bool = True) -> AsyncIterator[ActiveCrawl]:
        """A crawl, created if need be, that stays loaded until its holder is done with it.

        Two of one crawl would write over each other's notebook; so whoever teaches one between two awaits holds it.
        """
        if crawl not in self.known:  # what is taught next does not come on top of the making of a strategy
            await self.get(crawl, at, create)
            await let_others()
        active = await self.get(crawl, at, create)
        with self._holding(crawl):
            yield active

    @contextmanager
    def _holding(self, crawl: Crawl) -> Iterator[None]:
        self._holders[crawl] += 1
        try:
            yield
        finally:
            self._holders[crawl] -= 1
            if not self._holders[crawl]:
                del self._holders[crawl]
                if crawl in self._leaving:
                    self._leaving.pop(crawl).set()

    @asynccontextmanager
    async def held_to_ask(self, crawl: Crawl, at: float, create: bool = True) -> AsyncIterator[ActiveCrawl]:
        """The same for somebody who only asks: where there is nothing, one stands for all, and learns nothing."""
        await self._keep_up()
        await self._stored(crawl, at, create)
        active = await self._seen(crawl, at)
        with self._holding(crawl):
            yield active

    def is_current(self, crawl: Crawl, active: ActiveCrawl) -> bool:
        """Whether the crawl is there and was not defined anew since."""
        return self.known.get(crawl) is active

    async def current(self, crawl: Crawl, active: ActiveCrawl, at: float) -> ActiveCrawl:
        """The same crawl as it is defined by now. Raises `NotFound`."""
        return active if self.is_current(crawl, active) else await self.get(crawl, at, create=False)

    def is_shared(self, active: ActiveCrawl) -> bool:
        """Whether it stands for crawls that hold nothing."""
        return active is self._blank

    async def check(self, crawl: Crawl) -> None:
        """Raise `NotFound` for a crawl that is not there; nothing is loaded for it."""
        if await self._store.crawl_get(crawl) is None:
            raise await self._unknown(crawl)

    async def _stored(self, crawl: Crawl, at: float, create: bool) -> bytes:
        """The record of a crawl, which is created if it may be."""
        stored = await self._store.crawl_get(crawl)
        if stored is None:
            if not (create and self._config.crawls.auto_create):
                raise await self._unknown(crawl)
            await self._vacated(crawl)
            await self._create(crawl, at)
        return BLANK if stored is None else stored

    async def _create(self, crawl: Crawl, at: float) -> None:
        await self.check_room(crawl, "crawl_id")
        await self._begin(crawl, CrawlRecord(), at)
        await self.note_undefined(crawl)

    async def check_room(self, crawl: Crawl, field: str) -> None:
        """Nobody defined it: there may be so many of these, for each costs a little even if nothing comes of it."""
        most = self._config.crawls.max_auto_created
        if len(await self._undefined_of(crawl.tenant)) >= most:
            raise RateLimited(
                f"{field}: no crawl named {crawl.name!r}, and {most} were created already that nobody defined"
                " (crawls.max_auto_created); define this one, or delete some",
                field=field,
                retry_after_s=ROOM_AGAIN_S,
            )

    async def note_undefined(self, crawl: Crawl) -> None:
        (await self._undefined_of(crawl.tenant)).add(crawl)

    async def _undefined_of(self, tenant: str) -> set[Crawl]:
        if tenant not in self._undefined:
            crawls = await self.names(tenant)
            self._undefined[tenant] = {crawl for crawl in crawls if await self._is_undefined(crawl)}
        return self._undefined[tenant]

    async def _is_undefined(self, crawl: Crawl) -> bool:
        return await self._store.crawl_get(crawl) == BLANK or await self._store.queues_named(crawl)

    async def _is_blank(self, crawl: Crawl) -> bool:
        """Whether nobody defined it, and it holds nothing."""
        return await self._store.crawl_get(crawl) == BLANK and await self._store.is_untouched(crawl)

    def _blank_crawl(self) -> ActiveCrawl:
        if self._blank is None:
            self._blank = self._built(NO_CRAWL, CrawlRecord(), opening=True)
        return self._blank

    async def put(
        self, crawl: Crawl, definition: Definition, at: float, deleted: Collection[Crawl] | None = None
    ) -> bool:
        """Create or replace; True if it is new. A known frontier is judged anew by the new definition.

        Who changes a definition says which crawls were deleted since it was read: none is created, or takes the place
        of another that has its name by now.
        """
        await self._vacated(crawl)
        with self._holding(crawl):
            return await self._put(crawl, definition, at, deleted)

    async def _vacated(self, crawl: Crawl) -> None:
        """Whoever works on a crawl of this name that was deleted has noticed: none of it comes into the next one."""
        while crawl in self._leaving:
            await self._leaving[crawl].wait()

    async def _put(self, crawl: Crawl, definition: Definition, at: float, deleted: Collection[Crawl] | None) -> bool:
        built = await self._checked(crawl, CrawlRecord(definition))
        old = await self._if_there(crawl, at)
        if deleted is not None and (old is None or crawl in deleted):
            raise await self._unknown(crawl)
        await notebooks.check(self._store, crawl, built, old)
        self._undefined.get(crawl.tenant, set()).discard(crawl)
        if old is None:
            await self._begin(crawl, CrawlRecord(definition), at)
            if composition.warm_start(definition) is not None:  # now: the other crawl may be gone when it is first used
                await self._start(crawl, built)
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
        await make_way(await self._save(crawl, built.record, at))
        if old.record.definition != definition:
            await self._store.admit(crawl)  # hosts held back get a new hearing
            await redefinition.set_priorities(self._store, crawl, old, built)
            await self.renew(crawl, at, PAGES_AT_ONCE, RENEWED_AT_ONCE)
        happened("crawl_changed", "crawl {crawl} has a new definition", **crawl.logged, strategy=built.strategy.kind)
        self._changed(crawl, "changed")
        _warn(crawl, definition)
        return False

    async def _if_there(self, crawl: Crawl, at: float) -> ActiveCrawl | None:
        if await self._store.crawl_get(crawl) is None:
            return None
        with suppress(NotFound):  # it was deleted while it was loaded
            return await self.get(crawl, at, create=False)
        return None

    async def _checked(self, crawl: Crawl, record: CrawlRecord) -> ActiveCrawl:
        """Refuses what cannot be built. What takes long, as thousands of names, keeps nobody waiting."""
        await self._load_strategies(record)
        stored = await self._store.crawl_get(crawl) or BLANK

        def built() -> ActiveCrawl:
            check_names(record.definition, msgspec.json.decode(stored, type=CrawlRecord).definition)
            check_budget(pattern_lists(record.definition))
            return self._built(crawl, record)

        return await aside(built) if is_long(record) else built()

    def _new_strategies(self, record: CrawlRecord) -> set[str]:
        """Those that this guide has not loaded yet: their kernels may have to be compiled."""
        return compiling.named_in(composition.chosen(record.definition, self._defaults)) - self._strategies

    async def _load_strategies(self, record: CrawlRecord) -> None:
        """Before a crawl is built with them; crawls with other strategies are served meanwhile."""
        for name in sorted(self._new_strategies(record)):
            await self._loading.alone((NO_CRAWL, "strategy", name), partial(self._load_strategy, name))

    async def _load_strategy(self, name: str) -> None:
        if name not in self._strategies:
            await first_use.load(name)
            self._strategies.add(name)

    async def pause(self, crawl: Crawl, paused: bool, at: float) -> None:
        active = await self.get(crawl, at, create=False)
        active.record.paused = paused
        await self._save(crawl, active.record, at)
        if paused:
            happened("crawl_paused", "crawl {crawl} is paused", **crawl.logged)
        else:
            happened("crawl_resumed", "crawl {crawl} goes on", **crawl.logged)
        self._changed(crawl, "paused" if paused else "resumed")

    async def delete(self, crawl: Crawl) -> None:
        for remembered in (self.known, self._before, self._noted, self._learned):
            remembered.pop(crawl, None)
        self._undefined.get(crawl.tenant, set()).discard(crawl)
        if self._holders[crawl]:
            self._leaving.setdefault(crawl, asyncio.Event())
        if not await self._store.crawl_delete(crawl):
            raise await self._unknown(crawl)
        happened("crawl_deleted", "crawl {crawl} was deleted with all it held", **crawl.logged)
        self._changed(crawl, "deleted")

    def note(self, crawl: Crawl, state: str) -> None:
        """An ask was given nothing in this state: the log is told once that the crawl has come to its end."""
        if state in ("finished", "exhausted") and self._noted.get(crawl) != state:
            happened("crawl_finished", "crawl {crawl} is {state}", **crawl.logged, state=state)
            self._changed(crawl, state)
        self._noted[crawl] = state

    def _changed(self, crawl: Crawl, change: str) -> None:
        self.watcher.changed(crawl, change, self._defaults.now())

    async def names(self, tenant: str) -> list[Crawl]:
        return await self._store.crawl_list(tenant)

    async def state(self, crawl: Crawl, active: Outlined, at: float) -> str:
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

    async def pages_left(self, crawl: Crawl, active: Outlined) -> int | None:
        """How many more pages may be given out; None without a limit. What is on its way counts as fetched."""
        most = active.definition.limits.max_pages
        if not most:
            return None
        stats = await self._store.stats(crawl)
        return max(0, most - int(stats["fetches"] - stats["failed"] + stats["leased"]))

    async def stats(self, crawl: Crawl, at: float) -> CrawlStats:
        """As it lies there: nothing expires by looking, and nobody is unloaded for it.

        What a crawl has learned is not told of one that was not used since this guide opened, if there are very many.
        """
        await self._keep_up()
        outline = self._outline(await self._stored(crawl, at, create=False))
        numbers = await self._store.stats(crawl)
        state = await self.state(crawl, outline, at)
        learned = dict(await self._learned_by(crawl, at))
        return CrawlStats(state=state, strategy=outline.strategy_kind, learner=learned, **numbers)

    async def _learned_by(self, crawl: Crawl, at: float) -> Mapping[str, float]:
        if crawl in self._learned:
            return self._learned[crawl]
        full = crawl not in self.known and len(self.known) >= self._most
        if full and not await self._is_blank(crawl):
            return {}
        return (await self._seen(crawl, at)).strategy.guarded.stats()

    async def _seen(self, crawl: Crawl, at: float) -> ActiveCrawl:
        """A crawl that is there: where it holds nothing, one stands for all."""
        if crawl not in self.known and await self._is_blank(crawl):
            return self._blank_crawl()
        return await self.get(crawl, at, create=False)

    async def outline(self, crawl: Crawl, at: float) -> Outline:
        """What is known of a crawl without loading it. Raises `NotFound`."""
        stored = await self._stored(crawl, at, create=False)
        outline = self._outline(stored)
        await make_way(len(stored))
        return outline

    def _outline(self, stored: bytes) -> Outline:
        record = msgspec.json.decode(stored, type=CrawlRecord)
        chosen = composition.chosen(record.definition, self._defaults)
        definition = self._config.select.over(record.definition, chosen)
        return Outline(record, definition, ends_at(definition), chosen)

    async def _unknown(self, crawl: Crawl) -> NotFound:
        names = [known.name for known in await self.names(crawl.tenant)]
        first = max(0, bisect(names, crawl.name) - NAMES_COMPARED // 2)  # of very many those that begin alike
        short = [name for name in names[first : first + NAMES_COMPARED] if len(name) <= LONGEST_COMPARED]
        near = difflib.get_close_matches(crawl.name, short, 1) if len(crawl.name) <= LONGEST_COMPARED else []
        hint = f"did you mean {near[0]!r}?" if near else ""
        return NotFound(f"crawl_id: no crawl named {crawl.name!r}", field="crawl_id", hint=hint)

    async def _start(self, crawl: Crawl, built: ActiveCrawl) -> ActiveCrawl:
        await notebooks.remember(self._store, crawl, built)
        await notebooks.wake(self._store, crawl, built)
        if crawl in self._before:
            inherit(built, self._before.pop(crawl))
        await self._look_again_at_robots(crawl, built)
        self.known[crawl] = built
        self._learned.pop(crawl, None)
        await self._unload_others(crawl)
        return built

    async def _look_again_at_robots(self, crawl: Crawl, built: ActiveCrawl) -> None:
        """What a robots.txt forbade before the crawl was unloaded may be permitted now: all dropped is judged anew."""
        if self._services.robots is None or built.filter(Robots) is None:
            return
        rested = await self._store.state_get(crawl, RESTED)
        since = self._opened if rested is None else rested[1] / 1_000
        if await self._services.robots.changed_at(crawl.tenant) >= since:
            built.record.renew = tuple(sorted({*built.record.renew, redefinition.DROPPED}))

    async def _unload_others(self, loaded: Crawl) -> None:
        """Of too many crawls those go that were used the longest ago and that nobody holds or renews."""
        over = len(self.known) - self._most
        idle = (crawl for crawl, active in self.known.items() if not (self._holders[crawl] or active.record.renew))
        for crawl in [crawl for _, crawl in zip(range(over), idle, strict=False) if crawl != loaded]:
            active = self.known.pop(crawl)
            self._learned[crawl] = active.strategy.guarded.stats()
            await notebooks.put_to_rest(self._store, crawl, active)
            await self._store.state_put(crawl, RESTED, b"", milliseconds(self._defaults.now()))

    async def _keep_up(self) -> None:
        """What was built on a store that has read all anew since may have learned what nobody knows any more."""
        generation = await self._store.generation()
        if generation != self._generation:
            self._generation = generation
            for crawl, active in self.known.items():
                self._before[crawl] = active
            self.known.clear()

    def _built(self, crawl: Crawl, record: CrawlRecord, opening: bool = False) -> ActiveCrawl:
        """One that was there before is opened without what cannot be built any more, as a plugin that is gone."""
        chosen = composition.chosen(record.definition, self._defaults)
        definition = self._config.select.over(record.definition, chosen)
        strategy = composition.strategy(definition, self._defaults, crawl.name, opening=opening)
        services = replace(self._services, tenant=crawl.tenant)
        return activate(record, definition, self._config.guide.filters, strategy, services, self._revivable)

    async def _begin(self, crawl: Crawl, record: CrawlRecord, at: float) -> None:
        """Written at once: a store that has to read its folder anew in the middle of a request still knows it."""
        await self.quotas.check_new_crawl(crawl.tenant)
        await self._save(crawl, record, at)
        await self._store.commit(durable=False)
        kind = str(composition.chosen(record.definition, self._defaults).get("kind", "layered"))
        happened("crawl_created", "crawl {crawl} was created", **crawl.logged, strategy=kind)
        self._changed(crawl, "created")
        _warn(crawl, record.definition)

    async def _save(self, crawl: Crawl, record: CrawlRecord, at: float) -> int:
        """Returns how many bytes it has."""
        stored = msgspec.json.encode(record)
        await self._store.crawl_put(crawl, stored, at)
        return len(stored)

    async def renew(self, crawl: Crawl, at: float, pages: int, most: int) -> None:
        """Judge some more of what is known by a definition that came later; others are served between the pages."""
        for page in range(pages):
            if page:
                await let_others()
            active = self.known.get(crawl)
            if active is None or not active.record.renew:
                return
            is_last = await redefinition.step(self._store, crawl, active, self._kinds, most)
            if is_last and self.is_current(crawl, active):
                await self._save(crawl, active.record, at)

    async def renew_all(self, at: float) -> None:
        await self._keep_up()
        for crawl, active in list(self.known.items()):
            if active.record.renew:
                with contained(f"crawl {crawl.name} of tenant {crawl.tenant}"):
                    await self.renew(crawl, at, PAGES_AT_ONCE, RENEWED_AT_ONCE)


def is_long(record: CrawlRecord) -> bool:
    """Whether it takes long to build: there is much of it, or it has patterns, of which a few can be as costly."""
    return any(pattern_lists(record.definition).values()) or len(msgspec.json.encode(record)) > LONG_BYTES


def _warn(crawl: Crawl, definition: Definition) -> None:
    """Whoever ignores robots.txt is named in the log."""
    policy = definition.policy
    if policy.robots == "ignore" or policy.robots_exceptions:
        where = "everywhere" if policy.robots == "ignore" else ", ".join(policy.robots_exceptions[:10])
        happened("robots_ignored", "crawl {crawl} ignores robots.txt: {where}", WARNING, **crawl.logged, where=where)
