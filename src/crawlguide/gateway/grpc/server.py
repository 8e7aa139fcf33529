"""The door for `crawlguide.v1.Guide`: each of its methods is an endpoint of HTTP, answered as there."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf.message_factory import GetMessageClass

from crawlguide.core.errors import CrawlGuideError, MalformedRequest
from crawlguide.core.messages import Advice, ReportMessage, SeedsMessage
from crawlguide.gateway import routes, strict, wire
from crawlguide.gateway.access.entrance import OPEN_HEADER, OPEN_WORDS
from crawlguide.gateway.grpc import transport
from crawlguide.gateway.grpc.conversion import json_text, read_request, strictly, written
from crawlguide.gateway.grpc.health import HEALTH, Health
from crawlguide.gateway.grpc.methods import METHODS, SERVICE, WHOLE, Method
from crawlguide.gateway.grpc.reading import Reads, owner
from crawlguide.gateway.grpc.reflection import REFLECTION, Reflection
from crawlguide.gateway.grpc.streams import STREAMS, Conversation
from crawlguide.gateway.service import Wanted
from crawlguide.guide.crawl.transfer import lines_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.message import Message

    from crawlguide.gateway.access.credential import Credential
    from crawlguide.gateway.access.entrance import Caller
    from crawlguide.gateway.grpc.streams import StreamKind
    from crawlguide.gateway.grpc.transport import Behaviour, Context
    from crawlguide.gateway.routes import RouteCall
    from crawlguide.gateway.service import Service

TEXTS = strictly(strict.check)
log = logging.getLogger(__name__)


class GrpcDoor:
    """Opened by `server.grpc`. `service` is all it needs: a test opens it over a guide of its own."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._left: set[asyncio.Task[Any]] = set()  # what is brought to its end though its client has gone
        self._conversations: set[Conversation] = set()
        self._reads = Reads(service.load, service.options)
        self._health = Health(service)
        behaviour = {method.name: _behaviour(self, method) for method in METHODS}
        streams: dict[str, Behaviour] = {kind.name: partial(self._stream, kind) for kind in STREAMS}
        reflection = Reflection(service, (SERVICE.full_name, HEALTH.full_name))
        self._server = transport.server(
            service.options,
            transport.handlers(SERVICE, behaviour | streams),
            transport.handlers(HEALTH, self._health.behaviour()),
            transport.handlers(REFLECTION, reflection.behaviour()),
        )

    async def open(self) -> dict[str, Any]:
        options = self._service.options
        port = transport.listen(self._server, options, options.grpc_port, "server.grpc_port")
        await self._server.start()
        return {"grpc_port": port}

    async def close(self) -> None:
        """Streams end when what they asked is answered, and what they hold goes back."""
        self._health.leave()
        for conversation in tuple(self._conversations):
            conversation.leave()
        await self._server.stop(self._service.options.drain_s)
        if self._left:
            await asyncio.wait(self._left, timeout=self._service.options.drain_s)

    # one request, one answer

    async def unary(self, method: Method, gives: type[Message], context: Context) -> Message | None:
        try:
            result = await self._shielded(await self._asked(method, context), Waiting())
            answer, created = result if isinstance(result, tuple) else (result, False)
            if self._service.entrance.is_open_to_all:
                context.set_trailing_metadata(((OPEN_HEADER, OPEN_WORDS),))
            if method.answer:
                return gives(**{method.answer: json_text(answer)})
            with wire.Undisturbed():  # all that is made on the way is gone at its end
                values = written(gives.DESCRIPTOR, answer)
                return gives(**values, created=True) if created else gives(**values)
        except CrawlGuideError as problem:
            await transport.refuse(context, problem)

    async def export(self, method: Method, gives: type[Message], context: Context) -> None:
        waiting = Waiting()
        try:
            pieces = await self._shielded(await self._asked(method, context), waiting)
            with transport.counted(self._service, context, waiting.call.credential):
                async for piece in pieces:
                    await transport.write(context, gives(lines=piece), self._service.options.socket_stall_s)
        except CrawlGuideError as problem:
            await transport.refuse(context, problem)

    async def _asked(self, method: Method, context: Context) -> Asked:
        """Who asks, and what. Raises what refuses it."""
        caller = transport.caller(context)
        credential, request = await self._service.received(
            method.label,
            route_of(method),
            caller,
            lambda known: self._reads.read(context, owner(known, caller.address)),
        )
        return Asked(caller, credential, Served(method, request))

    async def _shielded(self, asked: Asked, waiting: Waiting) -> Any:
        """What was begun is not cut in the middle: a client may go, or its deadline pass, at any time."""
        wanted = asked.served.wanted(waiting)
        task = asyncio.create_task(self._service.answer(asked.caller, wanted, asked.credential))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            waiting.ended = True
            self.keep(self._withdrawn(task, waiting))
            raise

    async def _withdrawn(self, task: asyncio.Task[Any], waiting: Waiting) -> None:
        """An ask for which nobody waits leaves no lease: if the guide did not notice, it is told so."""
        await asyncio.wait([task])
        if task.exception() is None and isinstance(task.result(), Advice) and not waiting.noticed:
            await self._service.guide.withdraw(waiting.call.message, task.result(), waiting.call.tenant)

    def keep(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._left.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._left.discard(task)
        if not task.cancelled() and isinstance(task.exception(), CrawlGuideError):
            log.debug("what a client had left could not be returned: %s", task.exception())

    # streams both ways

    async def _stream(self, kind: StreamKind, context: Context) -> None:
        conversation = Conversation(kind, self._service, context, partial(message_of, kind.route.takes))
        self._conversations.add(conversation)
        try:
            with transport.counted(self._service, context, conversation.admit()):
                await conversation.run()
        except CrawlGuideError as problem:
            await transport.refuse(context, problem)
        finally:
            self._conversations.discard(conversation)
            await asyncio.shield(self.keep(conversation.end()))


def _behaviour(door: GrpcDoor, method: Method) -> Behaviour:
    gives = GetMessageClass(SERVICE.methods_by_name[method.name].output_type)
    return partial(door.export if method.answer == "lines" else door.unary, method, gives)


class Waiting:
    """Whether a client waits for its answer; and whether the guide has noticed that it does not."""

    call: RouteCall  # once it was served

    def __init__(self) -> None:
        self.ended = self.noticed = False

    def served(self, call: RouteCall, _: Any) -> None:
        self.call = call

    def __call__(self) -> bool:
        self.noticed = self.noticed or self.ended
        return not self.ended


class Asked(NamedTuple):
    """One request of somebody who was admitted."""

    caller: Caller
    credential: Credential
    served: Served


def route_of(method: Method) -> routes.Route:
    """The endpoint of HTTP that it is at this door."""
    return routes.BY_ENDPOINT[method.method, method.path]


class Served:
    """One request as the endpoint of HTTP would get it."""

    def __init__(self, method: Method, request: Any) -> None:
        self._method, self._request = method, request
        self._route = route_of(method)

    def wanted(self, waiting: Waiting) -> Wanted:
        size = self._request.ByteSize()
        return Wanted(
            self._method.label, self._route, self._path(), self._query(), self.read, size, waiting, waiting.served
        )

    def _path(self) -> Mapping[str, str]:
        if not self._method.of_crawl:
            return {}
        if not self._request.HasField("crawl_id"):
            raise MalformedRequest("crawl_id: required, but missing", field="crawl_id")
        return {"crawl_id": self._request.crawl_id}

    def _query(self) -> Mapping[str, str]:
        if self._method.body:
            return {}
        return {
            field.name: str(value) for field, value in self._request.ListFields() if field.name in self._route.query
        }

    def read(self) -> Any:
        """The message. Raises `MalformedRequest`."""
        body = self._method.body
        if body == WHOLE:
            return message_of(self._route.takes, self._request, self._method.of_crawl)
        if body == "lines":
            return lines_of(self._request.lines)
        return wire.decode(getattr(self._request, body).text.encode() or b"{}", self._route.takes) if body else None


def message_of(takes: Any, request: Any, of_crawl: bool = False) -> Any:
    """Our message out of one of protobuf. Raises `MalformedRequest`."""
    with wire.Undisturbed():
        return _message(takes, read_request(request, TEXTS), of_crawl)


def _message(takes: Any, values: dict[str, Any], of_crawl: bool) -> Any:
    if of_crawl:
        del values["crawl_id"]
    if takes is SeedsMessage:  # a seed of which nothing is said but its URL is a URL in JSON, too
        values["urls"] = [one["url"] if one.keys() == {"url"} else one for one in values.get("urls", ())]
    elif takes is ReportMessage:
        values.setdefault("fetches", [])  # no list and an empty one are the same here
    return wire.checked(values, takes)
