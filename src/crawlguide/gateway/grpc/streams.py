"""`NextStream` and `ReportStream`: a conversation in which each message is answered when its answer is there.

An error of one message is its answer. Reading stops where too much is unanswered, so that HTTP/2 holds the client back.
What was assigned here and not reported returns when the stream ends, whoever ends it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc.aio

from crawlguide.core.errors import (
    CrawlGuideError,
    Draining,
    MalformedRequest,
    Unauthenticated,
    UnavailableError,
)
from crawlguide.core.messages import Ack, Advice, AskMessage, ReportMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway.assigned import Holders
from crawlguide.gateway.conversation import LEAVING, InWork, Standing, ended
from crawlguide.gateway.grpc import guide_pb2, transport
from crawlguide.gateway.grpc.conversion import written
from crawlguide.gateway.routes import BY_ENDPOINT
from crawlguide.gateway.service import Wanted
from crawlguide.gateway.wire import Undisturbed, error_message

if TYPE_CHECKING:
    from collections.abc import Callable

    from crawlguide.gateway.access.credential import Credential
    from crawlguide.gateway.grpc.transport import Context
    from crawlguide.gateway.routes import Route, RouteCall
    from crawlguide.gateway.service import Service


class StreamKind(NamedTuple):
    """`asks` and `gives` name the fields of its messages that hold question and answer."""

    name: str
    path: str
    asks: str
    gives: str
    response: Any

    @property
    def route(self) -> Route:
        return BY_ENDPOINT["POST", self.path]


STREAMS = (
    StreamKind("NextStream", "/v1/next", "ask", "advice", guide_pb2.NextStreamResponse),
    StreamKind("ReportStream", "/v1/report", "report", "ack", guide_pb2.ReportStreamResponse),
)


class Conversation:
    """One stream from its first message to its last answer."""

    def __init__(
        self, kind: StreamKind, service: Service, context: Context, read: Callable[[Any], AskMessage | ReportMessage]
    ) -> None:
        self._kind, self._service, self._context, self._read = kind, service, context, read
        self._route, self._caller = kind.route, transport.caller(context)
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_work = InWork(service.options.socket_in_flight)
        self._standing = Standing(service.entrance, self._caller)
        self._room, self._writing = asyncio.Event(), asyncio.Lock()
        self._stopped: asyncio.Future[CrawlGuideError] = asyncio.get_running_loop().create_future()
        self._gone = False
        self._holders = Holders(service.assigned)

    def admit(self) -> Credential:
        """Who may not come in is told so before it says anything."""
        credential = self._service.entrance.admit(self._caller)
        self._service.check(self._route, credential, {})
        return credential

    async def run(self) -> None:
        """Until the client has said all and is answered. Raises why it ended sooner."""
        reading = asyncio.create_task(self._receive())
        watching = asyncio.create_task(self._watch())
        try:
            ends: set[asyncio.Future[Any]] = {reading, self._stopped}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                reading.result()
            if self._tasks:
                await asyncio.wait({*self._tasks})
            if self._stopped.done():
                raise self._stopped.result()
        finally:
            reading.cancel()
            watching.cancel()
            await asyncio.gather(reading, watching, return_exceptions=True)

    def leave(self) -> None:
        """The server ends: no more is heard, and what was asked is answered."""
        self._stop(Draining(LEAVING, retry_after_s=1.0))

    async def end(self) -> None:
        self._gone = True
        await ended(self._tasks, self._holders, self._service.guide)

    def _stop(self, problem: CrawlGuideError) -> None:
        if not self._stopped.done():
            self._stopped.set_result(problem)

    async def _receive(self) -> None:
        while True:
            while self._in_work.is_full:
                self._room.clear()
                await self._room.wait()
            message = await self._context.read()
            if message is grpc.aio.EOF:
                return
            self._start(message.read())

    def _start(self, message: Any) -> None:
        size = message.ByteSize()
        self._in_work.enter(size)
        task = asyncio.create_task(self._answered(message, size))
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._done(done, size))

    def _done(self, task: asyncio.Task[None], size: int) -> None:
        self._tasks.discard(task)
        self._in_work.leave(size)
        self._room.set()

    async def _watch(self) -> None:
        """A key that was revoked, or has expired, ends the stream, even if nothing is said on it."""
        try:
            await self._standing.watch()
        except Unauthenticated as problem:
            self._stop(problem)

    async def _answered(self, message: Any, size: int) -> None:
        kind = self._kind
        said: dict[str, Any] = {}
        try:
            said[kind.gives] = await self._served(message, size)
        except Unauthenticated as problem:
            self._stop(problem)
            return
        except CrawlGuideError as problem:
            said["error"] = written(guide_pb2.ErrorBody.DESCRIPTOR, error_message(problem).error)
        await self._write(kind.response(id=message.id, **said))

    async def _served(self, message: Any, size: int) -> dict[str, Any]:
        asked, kind = self._kind.asks, self._kind
        if not message.HasField(asked):
            raise MalformedRequest(f"{asked}: required, but missing", field=asked)
        wanted = Wanted(
            f"grpc {kind.name}",
            self._route,
            {},
            {},
            lambda: self._read(getattr(message, asked)),
            size,
            on_served=self._note,
        )
        answer: Advice | Ack = await self._service.answer(self._caller, wanted)
        with Undisturbed():
            return written(kind.response.DESCRIPTOR.fields_by_name[kind.gives].message_type, answer)

    def _note(self, call: RouteCall, answer: Advice | Ack) -> None:
        """What the client holds from now on."""
        if not isinstance(answer, Advice) or not answer.assigned_urls:
            return
        ask: AskMessage = call.message
        crawl = Crawl(call.tenant, ask.crawl_id)
        self._holders.of(crawl, ask.crawler_id, self._service.guide.clock.now()).add(answer, ask.request_id)

    async def _write(self, response: Any) -> None:
        """One after the other; a client that does not read loses its stream."""
        async with self._writing:
            if self._gone:
                return
            try:
                await transport.write(self._context, response, self._service.options.socket_stall_s)
            except UnavailableError as problem:
                self._gone = True
                self._stop(problem)
            except grpc.aio.BaseError:
                self._gone = True
