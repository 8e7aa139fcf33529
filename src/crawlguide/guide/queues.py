"""Crawls whose queues clients name: URLs come in and go out queue by queue, in the order that the crawl has learned.

Such a crawl is an ordinary one whose definition leaves it to its clients what may be fetched: robots.txt, traps and
risk are theirs to judge. What they say is kept as they say it: the spelling of a URL, its queue and its metadata.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import xxhash

from crawlguide import scoring
from crawlguide.core import urls
from crawlguide.core.clock import milliseconds
from crawlguide.core.columns import texts
from crawlguide.core.definition import Definition, Policy
from crawlguide.core.errors import Conflict, NotFound
from crawlguide.core.messages import Fetch
from crawlguide.core.outcomes import RELEASED
from crawlguide.core.turns import let_others
from crawlguide.core.types import DATED, GRANTED, Ask, Budget, Crawl, LeaseTerms, Lesson, Links, Report, Revisits
from crawlguide.guide.ask.pipeline import with_draw
from crawlguide.guide.tell.intake import Placed, columns_of, no_fetches
from crawlguide.guide.tell.telling import Telling, fresh_links

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from crawlguide.core.tables import F64, I64, U64
    from crawlguide.core.types import Batch, Fetches, QueueAsk, QueuedUrl
    from crawlguide.guide.ask.pipeline import Walked
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl
    from crawlguide.guide.local import LocalGuide

CLIENT = "urlfrontier"  # the crawler that holds what was given out: the clients of one crawl are not told apart
POLICY = Policy(
    robots="ignore",
    max_per_host=0,
    unreliable_threshold=1.0,
    max_retries=0,  # clients say when a URL is to be tried again
    traps=False,
    risk_threshold=1.0,
)
BELOW = (1 << 56) - 1
AT_ONCE = 500  # URLs looked at or forgotten before others are served
SPARE, MOST_LOOKED_AT = 2, 1_000  # so many times as many URLs are judged anew as are given out


class Found(NamedTuple):
    """A URL that was discovered, as its client says it; `parent` is the page it stands on, if that is known."""

    url: str
    key: str
    metadata: bytes | None = None
    parent: str = ""


class Known(NamedTuple):
    """A URL that its client knows: wanted from `date` on, or never again (0); and what came of its last fetch."""

    url: str
    key: str
    metadata: bytes | None
    date: int
    fetch: Fetch | None = None


class Taken(NamedTuple):
    """A URL that was given out, and why."""

    url: str
    key: str
    metadata: bytes | None
    score: float
    p: float
    reason: str


class Control(msgspec.Struct, frozen=True):
    """What is set for all queues of a tenant."""

    active: bool = True
    delay_s: int = 1


class NamedQueues:
    """The crawls of this kind. Every call says whose they are."""

    def __init__(self, guide: LocalGuide, auto_create: bool) -> None:
        self._guide, self._store, self._clock = guide, guide.store, guide.clock
        self._telling = Telling(guide.store, guide.robots)
        self._auto_create = auto_create
        self._creating = asyncio.Lock()

    # crawls

    async def begin(self, crawl: Crawl, ignores_robots: bool = True) -> None:
        """A crawl that is not there is created. `ignores_robots` counts for whoever asks for it at another door."""
        if await self._store.queues_named(crawl):
            return
        async with self._creating:
            if not await self._store.queues_named(crawl):
                await self._create(crawl, ignores_robots)

    async def _create(self, crawl: Crawl, ignores_robots: bool) -> None:
        known = await self._store.crawl_get(crawl) is not None
        if known and not await self._store.is_untouched(crawl):
            words = f"crawlID: the crawl {crawl.name!r} was made at another door, which knows no queues of clients"
            raise Conflict(f"{words}; use another name", field="crawlID")
        if not known and not self._auto_create:
            raise NotFound(f"crawlID: no crawl named {crawl.name!r}, and crawls.auto_create is off", field="crawlID")
        if not known:
            await self._guide.crawls.check_room(crawl, "crawlID")
        policy = POLICY if ignores_robots else msgspec.structs.replace(POLICY, robots="obey")
        await self._guide.define(crawl, Definition(policy=policy))
        await self._store.queues_begin(crawl, str(milliseconds(self._clock.now())))
        await self._guide.crawls.note_undefined(crawl)
        await self._store.commit()

    async def crawls(self, tenant: str) -> list[Crawl]:
        return [crawl for crawl in await self._store.crawl_list(tenant) if await self._store.queues_named(crawl)]

    # what comes in

    async def fitting(self, crawl: Crawl, items: Sequence[Found | Known]) -> list[bool]:
        """Whether each is known already, or its tenant may know more: what is full still hears of what it holds."""
        if await self._guide.crawls.quotas.has_room(crawl.tenant):
            return [True] * len(items)
        return [record is not None for record in await self._store.find(crawl, _ids(items))]

    async def discovered(self, crawl: Crawl, found: Sequence[Found]) -> list[bool]:
        """URLs join their queues; says of each whether it is new. They last with the next commit."""
        at = self._clock.now()
        async with self._guide.crawls.held(crawl, at, create=False) as active:
            links, pages = await self._links(crawl, found)
            discovery = await self._store.discover(crawl, links, pages, at)
            touched = [discovery.touched]
            fresh = fresh_links(links, discovery)
            if active.learner is not None:
                nobody, alone = texts([]), links.attach(parent=np.full(len(links), -1))
                touched.append(await active.learner.learn(Lesson(at, no_fetches(), nobody, nobody, alone, fresh)))
            await self._telling.rank(active, crawl, np.concatenate(touched))
            self._guide.crawls.quotas.grew(crawl.tenant, discovery.new)
        new = set(links.id[fresh].tolist())
        return [_taken_out(new, identity(one.url, one.key)) for one in found]

    async def _links(self, crawl: Crawl, found: Sequence[Found]) -> tuple[Links, Fetches | None]:
        """As links on the pages they were found on, as far as these are known; a page's links stand together."""
        pages = dict.fromkeys((one.parent, one.key) for one in found if one.parent)
        parents, numbers = await self._pages(crawl, list(pages)) if pages else (None, {})
        parent = np.array([numbers.get((one.parent, one.key), -1) for one in found], np.int64)
        if pages:
            order = np.argsort(parent, kind="stable")
            found, parent = [found[number] for number in order.tolist()], parent[order]
        count = len(found)
        links = Links(
            parent=parent,
            url=texts([one.url for one in found]),
            id=_ids(found),
            host=texts([one.key for one in found]),
            anchor=texts([""] * count),
            position=np.zeros(count, np.int32),
            manual_priority=np.full(count, np.nan),
            max_depth=np.full(count, -1, np.int32),
            metadata=texts([one.metadata for one in found]),
            reason=texts([None] * count),
        )
        return links, parents

    async def _pages(
        self, crawl: Crawl, named: Sequence[tuple[str, str]]
    ) -> tuple[Fetches | None, dict[tuple[str, str], int]]:
        """The pages that are known here: each waits in the queue of the link, or in that of its own host."""
        tried = [[identity(url, key), identity(url, host_key(url) or key)] for url, key in named]
        known = await self._store.find(crawl, np.array([key for two in tried for key in two], np.uint64))
        pages: dict[int, str] = {}
        of_link: dict[tuple[str, str], int] = {}
        for number, two in enumerate(tried):
            here = [key for key, record in zip(two, known[2 * number : 2 * number + 2], strict=True) if record]
            if here:
                of_link[named[number]] = here[0]
                pages[here[0]] = named[number][0]
        numbers = {key: number for number, key in enumerate(pages)}
        placed = Placed(texts(pages.values()), np.array(list(pages), np.uint64), texts([""] * len(pages)))
        messages = [Fetch(url, status=200) for url in pages.values()]
        columns = columns_of(messages, placed, placed, np.full(len(pages), np.nan), CLIENT) if pages else None
        return columns, {link: numbers[key] for link, key in of_link.items()}

    async def known(self, crawl: Crawl, items: Sequence[Known], trains: bool) -> None:
        """URLs are done, or wait from a date on; where a client says what came of a fetch, the crawl learns from it."""
        at = self._clock.now()
        async with self._guide.crawls.held(crawl, at, create=False) as active:
            told = await self._told(crawl, [item for item in items if item.fetch is not None])
            if told:
                await self._tell(active, crawl, told, at, trains)
            placed, dates = _placed(items), np.array([item.date for item in items], np.float64)
            metadata = texts([item.metadata for item in items])
            revisits = Revisits(placed.url, placed.id, placed.host, dates, metadata)
            new = await self._store.revisit(crawl, revisits, at)
            self._guide.crawls.quotas.grew(crawl.tenant, new)

    async def _told(self, crawl: Crawl, items: Sequence[Known]) -> list[Known]:
        """Of fetches those of URLs that are known: others are copies of what was learned elsewhere."""
        known = await self._store.find(crawl, _ids(items)) if items else ()
        return [item for item, record in zip(items, known, strict=True) if record is not None]

    async def _tell(self, active: ActiveCrawl, crawl: Crawl, items: Sequence[Known], at: float, trains: bool) -> None:
        messages = [item.fetch for item in items if item.fetch is not None]
        placed = _placed(items)
        relevance = np.array([active.intake.judge(fetch) for fetch in messages])
        fetches = columns_of(messages, placed, placed, relevance, CLIENT)
        links, _ = await self._links(crawl, ())
        report = Report(crawl, at, fetches, links, [item.url for item in items], {})
        recorded = await self._store.record(crawl, fetches, at, 0, trains)
        await self._telling.discovered(active, report, recorded, messages)

    # what goes out

    async def take(self, crawl: Crawl, ask: QueueAsk, lease_s: float, delay_s: float) -> list[Taken]:
        """The best of some queues, leased; a queue that gives something is left alone for its delay."""
        async with self._guide.crawls.held(crawl, ask.at, create=False) as active:
            spare = SPARE if min(ask.queues * ask.per_queue, ask.most) * SPARE <= MOST_LOOKED_AT else 1
            batch = await self._store.queues_open(crawl, ask._replace(spare=spare))
            if not len(batch):
                return []
            await active.intake.search_ahead(batch.url.tolist)
            walked = self._ranked(active, crawl, batch, ask)
            terms = LeaseTerms(CLIENT, None, ask.at, lease_s, delay_s, 0.0)
            grants = await self._store.queues_serve(crawl, walked.batch.id, terms)
            if walked.moved is not None:
                await self._store.rank(crawl, *walked.moved)
            granted = np.flatnonzero(grants.outcome == GRANTED)
            metadata = [grants.metadata[row] for row in granted.tolist()]
            walked = walked.take(granted)
            if active.learner is not None and len(granted):
                active.learner.assigned(walked.batch, walked.ask)
            await self._store.count(crawl, {"asks": 1, "assigned": len(granted)})
        await self._store.commit(durable=False)
        return _given(walked, metadata)

    async def give_back(self, crawl: Crawl, taken: Sequence[Taken]) -> None:
        """URLs that never reached a client wait again."""
        if taken and await self._store.queues_named(crawl):
            placed = _placed(taken)
            messages, unknown = [Fetch(one.url, error=RELEASED) for one in taken], np.full(len(taken), np.nan)
            fetches = columns_of(messages, placed, placed, unknown, CLIENT)
            await self._store.record(crawl, fetches, self._clock.now(), 0)
            await self._store.commit(durable=False)

    def _ranked(self, active: ActiveCrawl, crawl: Crawl, batch: Batch, ask: QueueAsk) -> Walked:
        """Of each queue as many as are wanted: first those with a date, the earliest first, then by score."""
        order = dict(zip(batch.id.tolist(), np.nan_to_num(batch.manual_priority).tolist(), strict=True))
        batch.manual_priority[batch.manual_priority >= DATED] = np.nan  # its score is what it is worth
        question = with_draw(active, Ask(crawl, CLIENT, ask.at, Budget(len(batch))))
        walked = self._guide.pipeline.judged(active, question, batch, len(batch))
        dated = np.array([order[key] for key in walked.batch.id.tolist()])
        dated[dated < DATED] = 0.0
        if walked.moved is not None:
            ids, priority = walked.moved
            free = np.array([order[key] < DATED for key in ids.tolist()], np.bool_)
            object.__setattr__(walked, "moved", (ids[free], priority[free]))
        rows = np.lexsort((-walked.batch.score, -dated, walked.batch.host))
        return walked.take(rows[_place_in_group(walked.batch.host[rows]) < ask.per_queue])

    # what is set for all queues of a tenant

    async def control(self, tenant: str) -> Control:
        house = _house(tenant)
        stored = None if await self._store.crawl_get(house) is None else await self._store.state_get(house, CLIENT)
        return Control() if stored is None else msgspec.json.decode(stored[0], type=Control)

    async def set_control(self, tenant: str, **changes: bool | int) -> None:
        house, new = _house(tenant), msgspec.structs.replace(await self.control(tenant), **changes)
        if await self._store.crawl_get(house) is None:
            await self._store.crawl_put(house, b"", self._clock.now())
        before = await self._store.state_get(house, CLIENT)
        await self._store.state_put(house, CLIENT, msgspec.json.encode(new), 1 if before is None else before[1] + 1)
        await self._store.commit()

    # what people look at and forget, some at a time

    async def listed(self, crawl: Crawl, key: str | None) -> AsyncIterator[list[QueuedUrl]]:
        """All URLs of a queue, or of all, in the order in which they came."""
        for ids in _portions(await self._store.queue_ids(crawl, key)):
            yield [one for one in await self._store.queue_urls(crawl, ids) if one is not None]
            await let_others()

    async def forget(self, crawl: Crawl, ids: U64, *, leased: bool = True) -> tuple[int, int]:
        """Returns how many were forgotten, and how many of them were not done."""
        count = active = 0
        for some in _portions(ids):
            if not await self._store.queues_named(crawl):  # it was deleted meanwhile
                break
            forgotten, not_done = await self._store.queue_forget(crawl, some, leased=leased)
            count, active = count + forgotten, active + not_done
            await self._store.commit(durable=False)
            await let_others()
        await self._store.commit()
        return count, active


def identity(url: str, key: str) -> int:
    """The id of a URL in a queue: that of the URL alone where the queue is its host's, so that other doors find it."""
    if url.startswith((f"https://{key}/", f"http://{key}/")):
        return urls.identity(url, key)
    return urls.partition(key) << 56 | xxhash.xxh3_64_intdigest(f"{key}\0{url}".encode()) & BELOW


def host_key(url: str) -> str:
    """The queue of a URL whose client names none: what stands between its scheme and the first of `:/?&`."""
    before, scheme, after = url.partition("://")
    rest = after if scheme else before
    for end in ":/?&":
        rest = rest.partition(end)[0]
    return rest


def _ids(items: Sequence[Found | Known | Taken]) -> U64:
    return np.array([identity(item.url, item.key) for item in items], np.uint64)


def _placed(items: Sequence[Known | Taken]) -> Placed:
    return Placed(texts([item.url for item in items]), _ids(items), texts([item.key for item in items]))


def _taken_out(new: set[int], key: int) -> bool:
    """Whether it is among them; the first of equal ones alone is."""
    if key not in new:
        return False
    new.remove(key)
    return True


def _place_in_group(groups: I64) -> I64:
    """The place of each row among those of its group, which stand together."""
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    lengths = np.diff(starts, append=len(groups))
    return np.arange(len(groups)) - np.repeat(starts, lengths)


def _given(walked: Walked, metadata: Sequence[bytes | None]) -> list[Taken]:
    batch = walked.batch
    p: F64 = np.clip(batch.value, 0.0, 1.0)
    columns = (batch.score.tolist(), p.tolist(), scoring.reasons(walked.terms).tolist())
    keys = np.array(batch.hosts.name.tolist(), object)[batch.host].tolist()
    return list(map(Taken, batch.url.tolist(), keys, metadata, *columns))


def _portions(ids: U64) -> list[U64]:
    return [ids[first : first + AT_ONCE] for first in range(0, len(ids), AT_ONCE)]


def _house(tenant: str) -> Crawl:
    """A crawl that nobody sees."""
    return Crawl("", f"{CLIENT} {tenant}")
