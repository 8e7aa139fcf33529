"""The door for clients of URLFrontier: its 19 calls, each admitted, counted and logged as at every other door."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc
import grpc.aio

from crawlguide.core.errors import (
    CrawlGuideError,
    Draining,
    RateLimited,
    StorageFull,
    TooLarge,
    Unauthenticated,
    UnavailableError,
)
from crawlguide.core.turns import in_turns
from crawlguide.gateway.conversation import LEAVING, Standing
from crawlguide.gateway.grpc import transport
from crawlguide.gateway.grpc.reading import Reads, owner
from crawlguide.gateway.responses import STATUS
from crawlguide.gateway.routes import Route
from crawlguide.gateway.service import Wanted
from crawlguide.gateway.urlfrontier import items
from crawlguide.gateway.urlfrontier import urlfrontier_pb2 as wire
from crawlguide.gateway.urlfrontier.calls import FAIL, SERVED, Calls, PutIn, UnknownQueue, named_crawl, round_of
from crawlguide.gateway.urlfrontier.counts import Counts
from crawlguide.guide.queues import NamedQueues

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence

    from crawlguide.core.errors import RequestError
    from crawlguide.gateway.access.credential import Credential
    from crawlguide.gateway.access.entrance import Caller
    from crawlguide.gateway.grpc.transport import Behaviour, Context
    from crawlguide.gateway.service import Service
    from crawlguide.gateway.urlfrontier.calls import Given, Round

SERVICE = wire.DESCRIPTOR.services_by_name["URLFrontier"]
MOST_ITEMS, MOST_BATCHES = 1_024, 16  # of one stream that are not acknowledged
MOST_BYTES = 4 * 1024 * 1024  # of one stream, beyond which the next message is not read
ITEMS_AT_ONCE = 10_000  # of batches that are put together
READ_AT_ONCE = 500  # items that are read before others are served
WRITTEN_AT_ONCE = 100
PATIENCE_S = 10.0  # for which a stream waits when its client is too fast, before items fail
NOT_NOW = (RateLimited, UnavailableError, StorageFull, TooLarge)
CRAWL_FIELDS = {"DeleteCrawl": "value"}  # where a request names its crawl, if not in `crawlID`
OF_NODE = ("ListNodes", "ListCrawls", "SetActive", "GetActive", "SetLogLevel")


class Acks(NamedTuple):
    """What a stream of puts is answered, and why it ends then, if it does."""

    acks: Sequence[Any]
    refusal: RequestError | None


class UrlFrontierDoor:
    """Opened by `server.frontier`."""

    def __init__(self, service: Service) -> None:
        crawls = service.config.crawls
        self._service = service
        queues = NamedQueues(service.guide, crawls.auto_create)
        self._calls = Calls(queues, Counts(service.metrics.registry))
        self._answers = Answers(service, self._calls)
        self._server = transport.server(service.options, transport.handlers(SERVICE, self._answers.behaviour()))

    async def open(self) -> dict[str, Any]:
        options = self._service.options
        port = transport.listen(self._server, options, options.frontier_port, "server.frontier_port")
        self._calls.node = f"{options.host}:{port}"
        await self._server.start()
        return {"frontier_port": port}

    async def close(self) -> None:
        """Streams end when what came in is acknowledged: their clients keep them open for ever."""
        self._answers.leave()
        await self._server.stop(self._service.options.drain_s)
        if self._answers.left:
            await asyncio.wait(self._answers.left, timeout=self._service.options.drain_s)


class Answers:
    """Between gRPC and the calls."""

    def __init__(self, service: Service, calls: Calls) -> None:
        self._service, self._calls = service, calls
        self._reads = Reads(service.load, service.options)
        self._open: set[ReadAhead] = set()
        self.left: set[asyncio.Task[Any]] = set()  # what is brought to its end though its client may have gone
        self._routes = {
            name: Route("RPC", f"/{SERVICE.full_name}/{name}", scope, name, None, None, partial(serves, calls))
            for name, (scope, serves) in SERVED.items()
        }

    def leave(self) -> None:
        """The server ends: no more is read of any stream."""
        for ahead in self._open:
            ahead.stop(Draining(LEAVING, retry_after_s=1.0))

    def behaviour(self) -> dict[str, Behaviour]:
        """What serves each method."""
        streams: dict[str, Behaviour] = {
            "ListURLs": self._list_urls,
            "GetURLs": self._get_urls,
            "PutURLs": self._put_urls,
            "PutDiscovered": self._put_discovered,
        }
        return {**{name: partial(self._unary, name) for name in self._routes}, **streams}

    async def _answer(
        self,
        name: str,
        caller: Caller,
        message: Any,
        crawl: str | None,
        size: int,
        admitted: Credential | None = None,
    ) -> Any:
        """One step of a call. What was begun is not cut in the middle: a client may go at any time."""
        return await asyncio.shield(self._begun(name, caller, message, crawl, size, admitted))

    def _begun(
        self,
        name: str,
        caller: Caller,
        message: Any,
        crawl: str | None,
        size: int,
        admitted: Credential | None = None,
    ) -> asyncio.Task[Any]:
        """The step through what every door passes."""
        path: Mapping[str, str] = {} if crawl is None else {"crawl_id": named_crawl(crawl)}
        key = getattr(message, "key", None)
        query = {"key": key[:255]} if isinstance(key, str) and key else {}
        wanted = Wanted(f"urlfrontier {name}", self._routes[name], path, query, lambda: message, size)
        return self._keep(self._service.answer(caller, wanted, admitted))

    def _keep(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self.left.add(task)
        task.add_done_callback(self.left.discard)
        return task

    async def _unary(self, name: str, context: Context) -> Any:
        caller = transport.caller(context)
        try:
            credential, request = await self._service.received(
                f"urlfrontier {name}", self._routes[name], caller, partial(self._read, context)
            )
            crawl = None if name in OF_NODE else getattr(request, CRAWL_FIELDS.get(name, "crawlID"))
            if name == "SetDelay" and not request.key:
                crawl = None
            return await self._answer(name, caller, request, crawl, request.ByteSize(), credential)
        except UnknownQueue as problem:
            await context.abort(grpc.StatusCode.UNKNOWN, problem.message)
        except CrawlGuideError as problem:
            await transport.refuse(context, problem)

    async def _read(self, context: Context, credential: Credential) -> Any:
        return await self._reads.read(context, owner(credential, transport.address(context.peer())))

    # one request, a stream of answers

    async def _list_urls(self, context: Context) -> None:
        try:
            with self._counted(context):
                found: AsyncIterator[wire.URLItem] = await self._unary("ListURLs", context)
                async for item in found:
                    await self._write(context, [item])
        except CrawlGuideError as problem:
            await transport.refuse(context, problem)

    async def _get_urls(self, context: Context) -> None:
        """Round by round, as long as there is something to give and the client reads."""
        began, waits = time.perf_counter(), True
        counts, caller = self._calls.counts, transport.caller(context)
        counts.get_calls.inc()
        try:
            with self._counted(context) as credential:
                wanted: wire.GetParams = await self._read(context, credential)
                any_crawl = wanted.WhichOneof("item") != "crawlID"
                left: Round | None = None if any_crawl and wanted.key else round_of(wanted)
                if left is None:
                    self._service.entrance.admit(caller)  # it counts, too, though nothing is done
                while left is not None:
                    crawl = None if any_crawl else wanted.crawlID
                    given = await self._next_round(caller, left, crawl, wanted.ByteSize())
                    if waits:
                        counts.latency.observe(time.perf_counter() - began)
                        waits = False
                    await self._give(context, given)
                    left = given.rest
        except CrawlGuideError as problem:
            await transport.refuse(context, problem)

    async def _next_round(self, caller: Caller, left: Round, crawl: str | None, size: int) -> Given:
        """What it takes for a client that goes meanwhile waits again."""
        step = self._begun("GetURLs", caller, left, crawl, size)
        try:
            return await asyncio.shield(step)
        except asyncio.CancelledError:
            self._keep(self._returned(step))
            raise

    async def _returned(self, step: asyncio.Task[Given]) -> None:
        await asyncio.wait([step])
        if step.exception() is None and (given := step.result()).crawl is not None:
            await self._calls.queues.give_back(given.crawl, given.taken)

    async def _give(self, context: Context, given: Given) -> None:
        """What does not reach the client waits again."""
        if given.crawl is None:
            return
        sent = 0
        try:
            while sent < len(given.taken):
                some = given.taken[sent : sent + WRITTEN_AT_ONCE]
                await self._write(context, [items.given(given.crawl.name, one) for one in some])
                sent += len(some)
        finally:
            self._calls.counts.given.inc(sent)
            if sent < len(given.taken):
                await asyncio.shield(self._keep(self._calls.queues.give_back(given.crawl, given.taken[sent:])))

    async def _write(self, context: Context, messages: Sequence[Any]) -> None:
        for message in messages:
            await transport.write(context, message, self._service.options.socket_stall_s)

    # streams both ways

    async def _put_urls(self, context: Context) -> None:
        self._calls.counts.put_calls.inc()
        await self._stream("PutURLs", context, MOST_ITEMS, self._put_items)

    async def _put_discovered(self, context: Context) -> None:
        self._calls.counts.batch_calls.inc()
        await self._stream("PutDiscovered", context, MOST_BATCHES, self._put_batches)

    async def _stream(
        self, name: str, context: Context, most: int, put: Callable[[Caller, Sequence[Any]], Any]
    ) -> None:
        """Whatever has come in is taken in at once, and acknowledged; meanwhile the next is read, up to a bound."""
        caller = transport.caller(context)
        try:
            with self._counted(context) as credential:
                self._service.check(self._routes[name], credential, {})
                async with self._reading(context, most, caller) as ahead:
                    some = await ahead.next()
                    if not some:
                        self._service.entrance.admit(caller)  # it counts, too, though nothing is done
                    while some:
                        acks, refusal = await put(caller, some)
                        await self._write(context, acks)
                        self._raise_refusal(name, caller, refusal)
                        some = await ahead.next()
        except CrawlGuideError as problem:
            await transport.refuse(context, problem)

    @asynccontextmanager
    async def _reading(self, context: Context, most: int, caller: Caller) -> AsyncIterator[ReadAhead]:
        """Until the client has said all, its key is revoked, or the server ends."""
        async with ReadAhead(context, most) as ahead:
            watching = asyncio.create_task(_watch(ahead, Standing(self._service.entrance, caller)))
            self._open.add(ahead)
            try:
                yield ahead
            finally:
                self._open.discard(ahead)
                watching.cancel()

    def _raise_refusal(self, name: str, caller: Caller, refusal: RequestError | None) -> None:
        """What others have said was taken nevertheless."""
        if refusal is not None:
            self._service.log_refusal(f"urlfrontier {name}", STATUS[refusal.code], refusal, **caller.logged)
            raise refusal

    @contextmanager
    def _counted(self, context: Context) -> Iterator[Credential]:
        """A stream stays open as long as its client likes: it has a place among those of its credential.

        Within, the caller is known, so messages of any length may be read.
        """
        credential = transport.check_known(self._service, transport.caller(context))
        with transport.counted(self._service, context, credential):
            yield credential

    async def _put_items(self, caller: Caller, some: Sequence[wire.URLItem]) -> Acks:
        put = [items.put(item) async for part in in_turns(some, READ_AT_ONCE) for item in part]
        statuses, refusal = await self._put("PutURLs", caller, put, some)
        acks = [
            wire.AckMessage(ID=item.ID or _url_of(item), status=status)
            for item, status in zip(some, statuses, strict=True)
            if status is not None
        ]
        return Acks(acks, refusal)

    async def _put_batches(self, caller: Caller, some: Sequence[wire.DiscoveredBatch]) -> Acks:
        """A batch of which something was refused is not acknowledged."""
        acks: list[wire.BatchAck] = []
        for group in _groups(some):
            put = [
                items.discovered(info)
                for batch in group
                async for part in in_turns(batch.items, READ_AT_ONCE)
                for info in part
            ]
            found, refusal = await self._put("PutDiscovered", caller, put, group)
            statuses = iter(found)
            for batch in group:
                its = [status for status in islice(statuses, len(batch.items)) if status is not None]
                if len(its) == len(batch.items):
                    acks.append(wire.BatchAck(ID=batch.ID, statuses=its))
            if refusal is not None:
                return Acks(acks, refusal)
        return Acks(acks, None)

    async def _put(self, name: str, caller: Caller, put: Sequence[items.Put], some: Sequence[Any]) -> PutIn:
        """What cannot be taken now is to be sent again; who sends too fast is made to wait before that."""
        size, until = sum(message.ByteSize() for message in some), time.monotonic() + PATIENCE_S
        while True:
            try:
                found: PutIn = await self._answer(name, caller, put, None, size)
            except NOT_NOW as problem:
                wait_s = min(problem.retry_after_s or PATIENCE_S, 1.0)
                if not isinstance(problem, RateLimited) or time.monotonic() + wait_s > until:
                    return PutIn([FAIL] * len(put), None)
                await asyncio.sleep(wait_s)
            else:
                return found


class ReadAhead:
    """Reads a stream while what came before is worked on; stops reading where that is too much, by count or bytes."""

    def __init__(self, context: Context, most: int) -> None:
        self._context, self._most = context, most
        self._read: list[Any] = []
        self._bytes = 0  # of what was read and not taken
        self._ended = False
        self._stopped: CrawlGuideError | None = None
        self._changed = asyncio.Event()  # something came in, or the stream has ended
        self._room = asyncio.Event()

    async def __aenter__(self) -> ReadAhead:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def next(self) -> list[Any]:
        """All that has come in; empty at the end. Raises why the stream was stopped, once all of it was given."""
        while not self._read and not self._ended:
            await self._changed.wait()
            self._changed.clear()
        some, self._read, self._bytes = self._read, [], 0
        self._room.set()
        if not some and self._stopped is not None:
            raise self._stopped
        if not some:
            await self._task  # what ended it, if that was a mistake
        return some

    def stop(self, why: CrawlGuideError) -> None:
        """No more is read; a client that has said all is answered as if nothing were."""
        if not self._ended:
            self._stopped, self._ended = why, True
            self._task.cancel()
            self._changed.set()

    async def _run(self) -> None:
        try:
            while (message := await self._context.read()) is not grpc.aio.EOF:
                self._read.append(message.read())
                self._bytes += len(message.data)
                self._changed.set()
                while len(self._read) >= self._most or self._bytes >= MOST_BYTES:
                    self._room.clear()
                    await self._room.wait()
        finally:
            self._ended = True
            self._changed.set()


async def _watch(ahead: ReadAhead, standing: Standing) -> None:
    """A key that was revoked, or has expired, ends a stream, even if nothing is said on it."""
    try:
        await standing.watch()
    except Unauthenticated as problem:
        ahead.stop(problem)


def _groups(batches: Sequence[wire.DiscoveredBatch]) -> Iterator[list[wire.DiscoveredBatch]]:
    """Batches that are put together: many small ones, or a large one alone."""
    group: list[wire.DiscoveredBatch] = []
    count = 0
    for batch in batches:
        count += len(batch.items)
        if group and count > ITEMS_AT_ONCE:
            yield group
            group, count = [], len(batch.items)
        group.append(batch)
    if group:
        yield group


def _url_of(item: wire.URLItem) -> str:
    kind = item.WhichOneof("item")
    return "" if kind is None else str(getattr(item, kind).info.url)
