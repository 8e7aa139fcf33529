"""What each call of URLFrontier does: with the queues of whose crawls, and which scope that takes."""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crawlguide.core.errors import Forbidden, MalformedRequest, NotFound, RateLimited, RequestError
from crawlguide.core.messages import crawl_id
from crawlguide.core.turns import in_turns, let_others
from crawlguide.core.types import Crawl, QueueAsk, QueueFacts
from crawlguide.gateway.access.credential import ADMIN, ASK, READ, ROBOTS_OVERRIDE, TELL
from crawlguide.gateway.routes import trains
from crawlguide.gateway.urlfrontier import items
from crawlguide.gateway.urlfrontier import urlfrontier_pb2 as wire
from crawlguide.guide.queues import Found, Known, identity

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
    from typing import TypeAlias

    from crawlguide.gateway.routes import RouteCall
    from crawlguide.gateway.urlfrontier.counts import Counts
    from crawlguide.gateway.urlfrontier.items import Put
    from crawlguide.guide.queues import NamedQueues, Taken

    Status: TypeAlias = wire.AckMessage.Status.ValueType

OK, SKIPPED, FAIL = wire.AckMessage.OK, wire.AckMessage.SKIPPED, wire.AckMessage.FAIL
USUAL_LEASE_S, USUAL_PAGE = 30, 100
MOST_OF_QUEUE, MOST_OF_ROUND = 1_000, 500  # URLs that are given out at once
PUT_AT_ONCE = 300  # URLs taken in before others are served
CRAWLS_AT_ONCE = 100  # that are refused before others are served
DAY_S = 86_400.0
NOTHING = QueueFacts(0, 0, 0, 0, 0)
LEVELS = {
    wire.LogLevelParams.TRACE: logging.DEBUG,
    wire.LogLevelParams.DEBUG: logging.DEBUG,
    wire.LogLevelParams.INFO: logging.INFO,
    wire.LogLevelParams.WARN: logging.WARNING,
    wire.LogLevelParams.ERROR: logging.ERROR,
}


class Round(NamedTuple):
    """What is left to give of one call of `GetURLs`: how many queues, how much of each, and from which crawls."""

    queues: int
    per_queue: int
    key: str | None
    lease_s: int
    crawls: tuple[Crawl, ...] | None  # None: not looked up yet
    began: float | None = None  # a queue that opens again while the call goes on is not served again


class Given(NamedTuple):
    """URLs of one crawl, and what is left to give after them; None: nothing."""

    crawl: Crawl | None
    taken: Sequence[Taken]
    rest: Round | None


class PutIn(NamedTuple):
    """What became of each item; None: of its crawl nothing is taken, and `refusal` says why."""

    statuses: list[Status | None]
    refusal: RequestError | None


@dataclass
class Calls:
    """Every call has been admitted; `call.message` is what was sent."""

    queues: NamedQueues
    counts: Counts
    node: str = ""  # where this server answers
    turns: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # by tenant: which crawl is the next

    # crawls and nodes

    async def list_nodes(self, _: RouteCall) -> wire.StringList:
        return wire.StringList(values=[self.node])

    async def list_crawls(self, call: RouteCall) -> wire.StringList:
        crawls = [crawl for crawl in await self.queues.crawls(call.tenant) if call.credential.may(READ, crawl.name)]
        names = [crawl.name for crawl in crawls if (await self._facts(call, crawl, None)).queues]
        return wire.StringList(values=names)

    async def delete_crawl(self, call: RouteCall) -> wire.Long:
        crawl = call.crawl
        removed = (await self._facts(call, crawl, None)).active
        if await call.guide.store.queues_named(crawl):
            await call.guide.delete(crawl)
        return wire.Long(value=removed)

    # queues

    async def list_queues(self, call: RouteCall) -> wire.QueueList:
        wanted: wire.Pagination = call.message
        size, names = wanted.size or USUAL_PAGE, list[str]()
        if await call.guide.store.queues_named(call.crawl):
            names = list(
                await call.guide.store.queue_names(
                    call.crawl, wanted.start, size, call.guide.clock.now(), inactive=wanted.include_inactive
                )
            )
        return wire.QueueList(values=names, start=wanted.start, size=size, crawlID=call.crawl.name)

    async def get_stats(self, call: RouteCall) -> wire.Stats:
        facts = await self._facts(call, call.crawl, call.message.key or None)
        counts = {"completed": facts.done, "active_queues": facts.active_queues}
        return wire.Stats(
            size=facts.active,
            inProcess=facts.leased,
            counts=counts,
            numberOfQueues=facts.queues,
            crawlID=call.crawl.name,
        )

    async def _facts(self, call: RouteCall, crawl: Crawl, key: str | None) -> QueueFacts:
        store = call.guide.store
        if not await store.queues_named(crawl):
            return NOTHING
        return await store.queue_facts(crawl, key, call.guide.clock.now())

    async def delete_queue(self, call: RouteCall) -> wire.Long:
        store, key = call.guide.store, call.message.key
        if not await store.queues_named(call.crawl):
            return wire.Long()
        await store.queue_begin_anew(call.crawl, key)
        _, active = await self.queues.forget(call.crawl, await store.queue_ids(call.crawl, key))
        return wire.Long(value=active)

    async def block_queue_until(self, call: RouteCall) -> wire.Empty:
        """The second itself is blocked."""
        until = float(min(call.message.time, items.LONGEST_DATE))
        await self._control(call, block_until=until + 1.0 if until else -np.inf)
        return wire.Empty()

    async def set_delay(self, call: RouteCall) -> wire.Empty:
        wanted: wire.QueueDelayParams = call.message
        if wanted.key:
            await self._control(call, delay_s=float(wanted.delay_requestable))
        else:
            call.credential.check(ADMIN)  # it counts for all crawls
            await self.queues.set_control(call.tenant, delay_s=wanted.delay_requestable)
        return wire.Empty()

    async def set_crawl_limit(self, call: RouteCall) -> wire.Empty:
        if not await self._control(call, limit=call.message.limit):
            words = f"key: there is no queue {call.message.key[:200]!r} in the crawl {call.crawl.name!r}"
            raise UnknownQueue(words, field="key")
        return wire.Empty()

    async def _control(self, call: RouteCall, **what: float | int) -> bool:
        store = call.guide.store
        if not await store.queues_named(call.crawl):
            return False
        found = await store.queue_control(call.crawl, call.message.key, **what)  # type: ignore[arg-type]
        await store.commit()
        return found

    async def set_active(self, call: RouteCall) -> wire.Empty:
        call.credential.check(ADMIN)
        await self.queues.set_control(call.tenant, active=call.message.state)
        return wire.Empty()

    async def get_active(self, call: RouteCall) -> wire.Boolean:
        return wire.Boolean(state=(await self.queues.control(call.tenant)).active)

    async def set_log_level(self, call: RouteCall) -> wire.Empty:
        """Of this server's own packages; names of others mean nothing here."""
        if not call.credential.is_operator:
            raise Forbidden("the log is one of all tenants: expected the scope admin of tenant default")
        package = call.message.package
        if package.split(".")[0] == "crawlguide":
            logging.getLogger(package).setLevel(LEVELS.get(call.message.level, logging.INFO))
        return wire.Empty()

    # URLs that are looked at or forgotten

    async def get_url_status(self, call: RouteCall) -> wire.URLItem:
        wanted: wire.URLStatusRequest = call.message
        key = items.key_of(wanted.url, wanted.key)
        if not key:
            raise MalformedRequest(f"key: expected one, or a URL with a host, got {wanted.url[:200]!r}", field="key")
        if await call.guide.store.queues_named(call.crawl):
            found = await call.guide.store.queue_urls(call.crawl, np.array([identity(wanted.url, key)], np.uint64))
            if found[0] is not None:
                return items.listed(call.crawl.name, found[0])
        raise NotFound(f"url: {wanted.url[:200]!r} is not known in the queue {key!r}", field="url")

    async def list_urls(self, call: RouteCall) -> AsyncIterator[wire.URLItem]:
        wanted: wire.ListUrlParams = call.message
        matches = _matching(wanted.filter, wanted.ignoreCase)
        crawl, left, passed = call.crawl, wanted.size or USUAL_PAGE, wanted.start

        async def all_of_them() -> AsyncIterator[wire.URLItem]:
            nonlocal left, passed
            if not await call.guide.store.queues_named(crawl):
                return
            async for some in self.queues.listed(crawl, wanted.key or None):
                found = [one for one in some if matches(one.url)]
                for one in found[passed : passed + left]:
                    left -= 1
                    yield items.listed(crawl.name, one)
                passed = max(0, passed - len(found))
                if not left:
                    return

        return all_of_them()

    async def count_urls(self, call: RouteCall) -> wire.Long:
        wanted: wire.CountUrlParams = call.message
        if not wanted.filter:
            facts = await self._facts(call, call.crawl, wanted.key or None)
            return wire.Long(value=facts.active + facts.done)
        count, matches = 0, _matching(wanted.filter, wanted.ignoreCase)
        if await call.guide.store.queues_named(call.crawl):
            async for some in self.queues.listed(call.crawl, wanted.key or None):
                count += sum(matches(one.url) for one in some)
        return wire.Long(value=count)

    async def purge_urls(self, call: RouteCall) -> wire.Long:
        store, before = call.guide.store, call.guide.clock.now() - DAY_S * call.message.days
        if not await store.queues_named(call.crawl):
            return wire.Long()
        await store.expire(call.crawl, call.guide.clock.now())
        old = await store.queue_ids(call.crawl, call.message.key or None, before)
        count, _ = await self.queues.forget(call.crawl, old, leased=False)
        return wire.Long(value=count)

    # URLs that go out

    async def get_urls(self, call: RouteCall) -> Given:
        """One round: the queues of one crawl, as many as are given at once."""
        wanted: Round = call.message
        control = await self.queues.control(call.tenant)
        crawls = await self._crawls(call) if wanted.crawls is None else wanted.crawls
        if not (control.active and crawls):
            return Given(None, (), None)
        now, at_once = call.guide.clock.now(), min(wanted.queues, MOST_OF_ROUND)
        began = now if wanted.began is None else wanted.began
        ask = QueueAsk(now, at_once, wanted.per_queue, wanted.key, most=MOST_OF_ROUND, opened_by=began)
        taken: Sequence[Taken] = ()
        if await call.guide.store.queues_named(crawls[0]):
            taken = await self.queues.take(crawls[0], ask, wanted.lease_s, control.delay_s)
        served = len({one.key for one in taken})
        crawls_left = crawls if served >= at_once or len(taken) >= MOST_OF_ROUND else crawls[1:]
        rest = wanted._replace(queues=wanted.queues - served, crawls=crawls_left, began=began)
        return Given(crawls[0], taken, rest if rest.queues and crawls_left else None)

    async def _crawls(self, call: RouteCall) -> tuple[Crawl, ...]:
        """The one that is named, or all of them, each first in its turn."""
        if "crawl_id" in call.path:
            return (call.crawl,)
        found = [one for one in await self.queues.crawls(call.tenant) if call.credential.may(ASK, one.name)]
        self.turns[call.tenant] += 1
        first = self.turns[call.tenant] % max(1, len(found))
        return (*found[first:], *found[:first])

    # URLs that come in

    async def put_urls(self, call: RouteCall) -> PutIn:
        """The status of each item of `call.message`; they are on the disk. A crawl that is refused stops no other."""
        put: Sequence[Put] = call.message
        statuses: list[Status | None] = [SKIPPED] * len(put)
        by_crawl: dict[str, list[int]] = defaultdict(list)
        for number, one in enumerate(put):
            if one.item is not None:
                by_crawl[one.crawl].append(number)
        refusal = await self._put_by_crawl(call, put, by_crawl, statuses)
        if refusal is not None and not any(status is not None for status in statuses):
            raise refusal
        await call.guide.store.commit()
        self._count(put, statuses)
        return PutIn(statuses, refusal)

    async def _put_by_crawl(
        self, call: RouteCall, put: Sequence[Put], by_crawl: dict[str, list[int]], statuses: list[Status | None]
    ) -> RequestError | None:
        """Returns why a crawl was refused, if one was. Where one has no room no other that is not there has."""
        refusal: RequestError | None = None
        has_room = True  # whether there is any takes long to find out
        async for some in in_turns(tuple(by_crawl.items()), CRAWLS_AT_ONCE):
            for name, numbers in some:
                try:
                    if has_room or await call.guide.store.crawl_get(call.permitted(name)) is not None:
                        await self._put_in(call, name, put, numbers, statuses)
                    else:
                        _settle(statuses, numbers, FAIL)
                except RateLimited:
                    has_room = False
                    _settle(statuses, numbers, FAIL)
                except RequestError as problem:
                    refusal = refusal or problem
                    _settle(statuses, numbers, None)
        return refusal

    async def _put_in(
        self, call: RouteCall, name: str, put: Sequence[Put], numbers: Sequence[int], statuses: list[Status | None]
    ) -> None:
        """What one crawl is told. What it has no room for is to be sent again."""
        crawl = call.permitted(crawl_id(name))
        await self.queues.begin(crawl, call.credential.may(ROBOTS_OVERRIDE, name))
        for some in _in_order(put, numbers):
            fitting = await self.queues.fitting(crawl, [put[number].item for number in some])  # type: ignore[misc]
            _settle(statuses, some, FAIL)
            await self._put(
                call, crawl, put, [number for number, fits in zip(some, fitting, strict=True) if fits], statuses
            )
            await call.guide.store.commit(durable=False)  # so that no commit has very much to write at once
            await let_others()

    async def _put(
        self, call: RouteCall, crawl: Crawl, put: Sequence[Put], numbers: Sequence[int], statuses: list[Status | None]
    ) -> None:
        """Those that were discovered first, then those that are known: no item stands in both."""
        found = [number for number in numbers if isinstance(put[number].item, Found)]
        known = [number for number in numbers if isinstance(put[number].item, Known)]
        if found:
            new = await self.queues.discovered(crawl, [put[number].item for number in found])  # type: ignore[misc]
            for number, is_new in zip(found, new, strict=True):
                statuses[number] = OK if is_new else SKIPPED
        if known:
            learns = trains(call, crawl.name)
            await self.queues.known(crawl, [put[number].item for number in known], learns)  # type: ignore[misc]
            _settle(statuses, known, OK)

    def _count(self, put: Sequence[Put], statuses: Sequence[Status | None]) -> None:
        found = sum(type(one.item) is Found for one in put)
        dates = [one.item.date for one in put if isinstance(one.item, Known)]
        self.counts.put.inc(len(put))
        self.counts.discovered.inc(found)
        self.counts.known.inc(len(dates))
        self.counts.completed.inc(dates.count(0))
        self.counts.ignored.inc(statuses.count(SKIPPED))


class UnknownQueue(NotFound):
    """A limit for a queue that is not there: clients expect the status UNKNOWN."""


def round_of(wanted: wire.GetParams) -> Round:
    """All that a call of `GetURLs` wants. 0 means no limit."""
    per_queue = min(wanted.max_urls_per_queue or MOST_OF_QUEUE, MOST_OF_QUEUE)
    queues = 1 if wanted.key else wanted.max_queues or 2**31
    return Round(queues, per_queue, wanted.key or None, wanted.delay_requestable or USUAL_LEASE_S, None)


def named_crawl(text: str) -> str:
    """A crawl as other doors name it. Raises `MalformedRequest`."""
    return crawl_id(items.crawl_name(text))


def _settle(statuses: list[Status | None], numbers: Sequence[int], status: Status | None) -> None:
    for number in numbers:
        statuses[number] = status


def _in_order(put: Sequence[Put], numbers: Sequence[int]) -> Iterator[list[int]]:
    """Portions in which no URL that is known comes before the same one discovered: that would be news no more."""
    portion, known = list[int](), set[tuple[str, str]]()
    for number in numbers:
        item = put[number].item
        if len(portion) >= PUT_AT_ONCE or (known and isinstance(item, Found) and (item.url, item.key) in known):
            yield portion
            portion = []
            known.clear()
        if isinstance(item, Known):
            known.add((item.url, item.key))
        portion.append(number)
    yield portion


def _matching(text: str, ignore_case: bool) -> Callable[[str], bool]:
    if not ignore_case:
        return lambda url: text in url
    lower = text.lower()
    return lambda url: lower in url.lower()


SERVED: dict[str, tuple[str, Callable[[Calls, RouteCall], Awaitable[Any]]]] = {  # by method: the scope that it takes
    "ListNodes": (READ, Calls.list_nodes),
    "ListCrawls": (READ, Calls.list_crawls),
    "DeleteCrawl": (ADMIN, Calls.delete_crawl),
    "ListQueues": (READ, Calls.list_queues),
    "GetURLs": (ASK, Calls.get_urls),
    "PutURLs": (TELL, Calls.put_urls),
    "PutDiscovered": (TELL, Calls.put_urls),
    "GetStats": (READ, Calls.get_stats),
    "DeleteQueue": (ADMIN, Calls.delete_queue),
    "BlockQueueUntil": (ADMIN, Calls.block_queue_until),
    "SetActive": (ADMIN, Calls.set_active),
    "GetActive": (READ, Calls.get_active),
    "SetDelay": (ADMIN, Calls.set_delay),
    "SetLogLevel": (ADMIN, Calls.set_log_level),
    "SetCrawlLimit": (ADMIN, Calls.set_crawl_limit),
    "GetURLStatus": (READ, Calls.get_url_status),
    "ListURLs": (READ, Calls.list_urls),
    "CountURLs": (READ, Calls.count_urls),
    "PurgeURLs": (ADMIN, Calls.purge_urls),
}
