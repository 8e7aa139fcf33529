"""Every door as one small class with the same verbs, so that one test speaks for all: what is said goes in as a
dictionary, what is heard comes back as the JSON that HTTP would give, errors as well.

A new door is a class here and a name in `DOORS`. What it has no word for goes to the guide itself.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from uuid import uuid4

import grpc
import grpc.aio
import httpx
import msgspec
import pytest
from google.protobuf.json_format import ParseDict
from mcp import Client
from nats.js.api import DeliverPolicy
from tests.gateway.bus.common import KafkaCrawler, KafkaMock, NatsCrawler, NatsServer, fresh_prefix, nats_crawler
from tests.gateway.grpc_door.common import details_of
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from crawlguide import AsyncGuide
from crawlguide.agents.calls import GuardedGuide
from crawlguide.agents.finding import Searches, SearchOptions
from crawlguide.agents.http import PATH, Guard, HttpDoor
from crawlguide.agents.server import Desk
from crawlguide.core.config import BusOptions
from crawlguide.core.errors import CrawlGuideError, TooLarge
from crawlguide.core.messages import Released
from crawlguide.gateway import packed, serve, wire
from crawlguide.gateway.bus import kafka
from crawlguide.gateway.bus.door import BusDoor
from crawlguide.gateway.bus.messages import VERBS
from crawlguide.gateway.grpc import conversion, guide_pb2
from crawlguide.gateway.grpc.guide_pb2_grpc import GuideStub
from crawlguide.gateway.grpc.server import GrpcDoor
from crawlguide.gateway.listener import bound
from crawlguide.gateway.websocket.sockets import Sockets

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping

    from starlette.types import ASGIApp

    from crawlguide.gateway.service import Service

Said = dict[str, Any]
CRAWL = "books"
TOO_BIG, REFUSED = 1009, 1008
WITHIN_S, POLL_S = 30.0, 0.1
TENANTS = ("default", "mine", "other")  # of the tests
KAFKA_PLACES = ("dead", *(f"answers.{tenant}" for tenant in TENANTS))
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
RPC = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}


class Library:
    """No wire at all. Also what doors have in common: the service behind them, and what they have no word for."""

    settings: tuple[str, ...] = ()  # of `gateway/doors.py`: which of its doors this is

    def __init__(self, service: Service, where: Any = None, token: str = "") -> None:
        self.service, self.where = service, where
        self.headers = {"authorization": f"Bearer {token}"} if token else {}

    @staticmethod
    async def listen(service: Service, stack: AsyncExitStack) -> Any:  # noqa: ARG004 - as all doors
        """Open the door until the stack closes; returns where."""
        return None

    async def enter(self, stack: AsyncExitStack) -> None:
        """Connect, where there is something to connect."""

    async def end(self) -> None:
        """A history has ended."""

    async def ask(self, message: Said) -> bytes:
        return await _encoded(AsyncGuide(self.service.guide).ask(message))

    async def tell(self, message: Said) -> bytes:
        return await _encoded(AsyncGuide(self.service.guide).tell(message))

    async def release(self, crawler_id: str) -> bytes:
        async def released() -> Any:
            return Released(await AsyncGuide(self.service.guide).release(CRAWL, crawler_id))

        return await _encoded(released())

    async def rules(self, edit: Said) -> bytes:
        return await _encoded(AsyncGuide(self.service.guide).edit_rules(CRAWL, edit))

    @property
    def port(self) -> int:
        """Where anybody can connect and say anything."""
        return int(self.where if isinstance(self.where, int) else self.where[0].rpartition(":")[2])

    @staticmethod
    def agrees(heard: bytes, expected: bytes) -> bool:
        """Whether it is what the library gives: to the byte, unless a door says otherwise."""
        return heard == expected


class Http(Library):
    @staticmethod
    async def listen(service: Service, stack: AsyncExitStack) -> Any:
        return await stack.enter_async_context(answering(service, serve.checked(service, Sockets(service))))

    async def enter(self, stack: AsyncExitStack) -> None:
        url = f"http://127.0.0.1:{self.where}"
        client = httpx.AsyncClient(base_url=url, headers=self.headers, trust_env=False, timeout=WITHIN_S)
        self._client = await stack.enter_async_context(client)

    async def ask(self, message: Said) -> bytes:
        return await self._post("/v1/next", message)

    async def tell(self, message: Said) -> bytes:
        return await self._post("/v1/report", message)

    async def release(self, crawler_id: str) -> bytes:
        return await self._post(f"/v1/crawls/{CRAWL}/release", {"crawler_id": crawler_id})

    async def rules(self, edit: Said) -> bytes:
        return await self._post(f"/v1/crawls/{CRAWL}/rules", edit)

    async def _post(self, path: str, message: Said) -> bytes:
        return (await self._client.post(path, json=message)).content


class Socket(Library):
    """A WebSocket. One that is not opened, or is closed by the server, says so by an error like any other."""

    codec = "crawlguide.json"
    listen = Http.listen

    async def enter(self, stack: AsyncExitStack) -> None:
        self._number, self._refusal, names = 0, b"", [Subprotocol(self.codec)]
        url = f"ws://127.0.0.1:{self.where}/ws"
        opening = connect(url, subprotocols=names, additional_headers=self.headers, proxy=None)
        try:
            self._line = await stack.enter_async_context(opening)
        except InvalidStatus as refused:
            self._refusal = bytes(refused.response.body or b"")

    async def ask(self, message: Said) -> bytes:
        return await self._say("next", message)

    async def tell(self, message: Said) -> bytes:
        return await self._say("report", message)

    async def release(self, crawler_id: str) -> bytes:
        return await self._say("release", {"crawler_id": crawler_id, "crawl_id": CRAWL})

    async def _say(self, kind: str, message: Said) -> bytes:
        if self._refusal:
            return self._refusal
        self._number += 1
        try:
            await self._line.send(self.written({"type": kind, "id": self._number, **message}))
            async with asyncio.timeout(WITHIN_S):
                heard = self.read(await self._line.recv())
        except ConnectionClosed as end:
            return _goodbye(end)
        for word in (kind, "error"):
            beginning = b'{"type":"%b","id":%d,' % (word.encode(), self._number)
            if heard.startswith(beginning):
                return b"{" + heard.removeprefix(beginning)
        raise AssertionError(heard)

    @staticmethod
    def written(message: Said) -> str | bytes:
        return json.dumps(message)

    @staticmethod
    def read(heard: str | bytes) -> bytes:
        assert isinstance(heard, str)
        return heard.encode()


class PackedSocket(Socket):
    codec = "crawlguide.msgpack"

    @staticmethod
    def written(message: Said) -> str | bytes:
        return msgspec.msgpack.encode(message)

    @staticmethod
    def read(heard: str | bytes) -> bytes:
        assert isinstance(heard, bytes)
        packed.check(heard)
        return msgspec.json.encode(msgspec.msgpack.decode(heard))


class Agents(Library):
    """Tools of the Model Context Protocol, with the official client. Fields of tools are not nested."""

    async def enter(self, stack: AsyncExitStack) -> None:
        self._client = await stack.enter_async_context(Client(_desk(self.service).server()))

    async def ask(self, message: Said) -> bytes:
        named = {name: value for name, value in message.items() if name in {"crawl_id", "crawler_id", "request_id"}}
        return await self._call("next_urls", named | message.get("budget", {}) | message.get("context", {}))

    async def tell(self, message: Said) -> bytes:
        return await self._call("report_fetches", {key: message[key] for key in message if key != "mcp_version"})

    async def _call(self, tool: str, arguments: Said) -> bytes:
        return json.dumps((await self._client.call_tool(tool, arguments)).structured_content).encode()

    @staticmethod
    def agrees(heard: bytes, expected: bytes) -> bool:
        """Of an error the code: the bounds of tools are narrower."""
        one, other = json.loads(heard), json.loads(expected)
        if "error" in one and "error" in other:
            return bool(one["error"]["code"] == other["error"]["code"])
        return bool(one == other)


class AgentsOverHttp(Agents):
    """The same over streamable HTTP, by hand: the client would hide how it was refused."""

    @staticmethod
    async def listen(service: Service, stack: AsyncExitStack) -> Any:
        guard = Guard(service.entrance, service.load, service.options, service.log_refusal)
        page = HttpDoor(_desk(service).server(), guard)
        await stack.enter_async_context(page.sessions.run())
        return await stack.enter_async_context(answering(service, page.app()))

    async def enter(self, stack: AsyncExitStack) -> None:
        url = f"http://127.0.0.1:{self.where}"
        client = httpx.AsyncClient(base_url=url, headers=RPC | self.headers, trust_env=False, timeout=WITHIN_S)
        self._http, self._session = await stack.enter_async_context(client), dict[str, str]()

    async def _call(self, tool: str, arguments: Said) -> bytes:
        if not self._session:
            begun = await self._post("initialize", HELLO)
            if begun.status_code != 200:
                return begun.content
            self._session = {"mcp-session-id": begun.headers["mcp-session-id"]}
        answer = await self._post("tools/call", {"name": tool, "arguments": arguments})
        if answer.status_code != 200:
            return answer.content
        (said,) = [line[6:] for line in answer.text.splitlines() if line.startswith("data: {")]
        return json.dumps(json.loads(said)["result"]["structuredContent"]).encode()

    async def _post(self, method: str, params: Said) -> httpx.Response:
        said = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self._http.post(PATH, json=said, headers=self._session)


class Grpc(Library):
    """Messages of protobuf: numbers and texts are the same, the order of fields is not."""

    settings = ("server.grpc",)

    @staticmethod
    async def listen(service: Service, stack: AsyncExitStack) -> Any:
        service.options = msgspec.structs.replace(service.options, grpc_port=0, drain_s=5)
        door = GrpcDoor(service)
        port = (await door.open())["grpc_port"]
        stack.push_async_callback(door.close)
        return port

    async def enter(self, stack: AsyncExitStack) -> None:
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(f"127.0.0.1:{self.where}"))
        self.stub: Any = GuideStub(channel)
        self.more: Any = {"metadata": tuple(self.headers.items()), "timeout": WITHIN_S}

    async def ask(self, message: Said) -> bytes:
        return await self._call(self.stub.Next, ParseDict(message, guide_pb2.AskMessage()))

    async def tell(self, message: Said) -> bytes:
        return await self._call(self.stub.Report, ParseDict(message, guide_pb2.ReportMessage()))

    async def release(self, crawler_id: str) -> bytes:
        return await self._call(self.stub.Release, guide_pb2.ReleaseRequest(crawl_id=CRAWL, crawler_id=crawler_id))

    async def rules(self, edit: Said) -> bytes:
        text = guide_pb2.Json(text=json.dumps(edit))
        heard = await self._call(self.stub.EditRules, guide_pb2.EditRulesRequest(crawl_id=CRAWL, edit=text))
        return msgspec.json.encode(json.loads(heard).get("rules", json.loads(heard)))

    async def _call(self, method: Any, request: Any) -> bytes:
        try:
            return msgspec.json.encode(conversion.read_answer(await method(request, **self.more)))
        except grpc.aio.AioRpcError as problem:
            return _status(problem)

    @staticmethod
    def agrees(heard: bytes, expected: bytes) -> bool:
        return bool(json.loads(heard) == json.loads(expected))


# what the library says of a stream that ended while a message was sent, before its status came
ENDED_UNHEARD = "Internal error from Core"


class GrpcStream(Grpc):
    """Asks and reports on streams, which stay open until the history has ended."""

    async def enter(self, stack: AsyncExitStack) -> None:
        await super().enter(stack)
        self._streams = dict[str, Any]()
        stack.push_async_callback(self.end)

    async def ask(self, message: Said) -> bytes:
        ask = ParseDict(message, guide_pb2.AskMessage())
        return await self._say("NextStream", guide_pb2.NextStreamRequest(id="1", ask=ask))

    async def tell(self, message: Said) -> bytes:
        report = ParseDict(message, guide_pb2.ReportMessage())
        return await self._say("ReportStream", guide_pb2.ReportStreamRequest(id="1", report=report))

    async def _say(self, name: str, request: Any) -> bytes:
        if name not in self._streams:
            self._streams[name] = getattr(self.stub, name)(metadata=self.more["metadata"])
        stream = self._streams[name]
        try:
            async with asyncio.timeout(WITHIN_S):
                await stream.write(request)
                heard = await stream.read()
        except grpc.aio.AioRpcError as problem:
            if problem.details() == ENDED_UNHEARD:
                del self._streams[name]
                return await self._say(name, request)
            return _status(problem)
        except asyncio.InvalidStateError:  # it has ended before
            return await _ended(stream)
        if heard is grpc.aio.EOF:
            return await _ended(stream)
        kind = heard.WhichOneof("answer")
        answer = conversion.read_answer(getattr(heard, kind))
        return msgspec.json.encode({"error": answer} if kind == "error" else answer)

    async def end(self) -> None:
        while self._streams:
            _, stream = self._streams.popitem()
            if not stream.done():
                await stream.done_writing()
                while await stream.read() is not grpc.aio.EOF:
                    pass


class Nats(Library):
    """Requests over a real server of NATS."""

    settings = ("bus",)

    @staticmethod
    async def listen(service: Service, stack: AsyncExitStack) -> Any:
        return await _joined(service, stack, fresh_prefix(), nats=_nats_server(stack, jetstream=False).url)

    async def enter(self, stack: AsyncExitStack) -> None:
        address, prefix = self.where
        self._crawler = await stack.enter_async_context(nats_crawler(address, prefix))

    async def ask(self, message: Said) -> bytes:
        return await self._request("next", message)

    async def tell(self, message: Said) -> bytes:
        return await self._request("report", message)

    async def _request(self, verb: str, message: Said) -> bytes:
        return bytes((await self._crawler.requested(verb, message, **self.headers)).data)


class Kept(Library):
    """A bus that keeps messages. Whoever put one reads all answers and dead letters, and knows its own by a name.

    What is refused for now is not answered but comes again; `put_off` says how often that was.
    """

    settings = ("bus",)
    bus: str
    crawler: NatsCrawler | KafkaCrawler

    @property
    def put_off(self) -> int:
        labels = {"bus": self.bus, "outcome": "later"}
        return int(self.service.metrics.registry.get_sample_value("crawlguide_bus_messages_total", labels) or 0)

    async def ask(self, message: Said) -> bytes:
        return await self._say("next", message)

    async def tell(self, message: Said) -> bytes:
        return await self._say("report", message)

    async def _say(self, verb: str, message: Said) -> bytes:
        name = uuid4().hex
        await self.put(verb, message, name)
        async with asyncio.timeout(WITHIN_S):
            while (found := await self.arrived())[0] != name:
                pass  # another visitor's
        return found[1]

    async def next_heard(self) -> bytes:
        return (await self.arrived())[1]

    async def put(self, verb: str, message: Said, name: str) -> None:
        await self.crawler.put(verb, message, correlation_id=name, **self.headers)

    async def arrived(self) -> tuple[str, bytes]:
        """The name of a message, and its answer or why it is a dead letter."""
        raise NotImplementedError

    @staticmethod
    def agrees(heard: bytes, expected: bytes) -> bool:
        """To the byte, but for an id that the message had not and got from its place in the bus."""
        return re.sub(rb'"request_id":"(nats|kafka)-[^"]+"', b'"request_id":null', heard) == expected


class NatsQueue(Kept):
    """The queue that JetStream of a real server keeps."""

    bus = "nats"

    @staticmethod
    async def listen(service: Service, stack: AsyncExitStack) -> Any:
        return await _joined(service, stack, fresh_prefix(), nats=_nats_server(stack, jetstream=True).url)

    async def enter(self, stack: AsyncExitStack) -> None:
        address, prefix = self.where
        crawler = self.crawler = await stack.enter_async_context(nats_crawler(address, prefix))
        self._arrived: asyncio.Queue[Any] = asyncio.Queue()
        for place in ("answers.>", "dead"):
            subject = f"{prefix}.{place}"
            await crawler.stream.subscribe(subject, cb=self._arrived.put, deliver_policy=DeliverPolicy.NEW)

    async def arrived(self) -> tuple[str, bytes]:
        found = await self._arrived.get()
        body = _dead(found.headers) if found.subject.endswith(".dead") else bytes(found.data)
        return found.headers["correlation-id"], body


class Kafka(Kept):
    """Topics of librdkafka's mock cluster: the protocol is real, the broker is not."""

    bus = "kafka"

    @staticmethod
    async def listen(service: Service, stack: AsyncExitStack) -> Any:
        mock, prefix = KafkaMock(), fresh_prefix()
        stack.callback(mock.stop)
        KafkaCrawler(mock.address, prefix).made(*VERBS)
        with _answers_at_once():
            return await _joined(service, stack, prefix, kafka=mock.address)

    async def enter(self, stack: AsyncExitStack) -> None:
        address, prefix = self.where
        crawler = self.crawler = KafkaCrawler(address, prefix)
        self._reader = crawler.reading(crawler.made(*KAFKA_PLACES))
        stack.callback(self._reader.close)

    async def arrived(self) -> tuple[str, bytes]:
        while (found := await asyncio.to_thread(self._reader.poll, POLL_S)) is None or found.error():
            pass
        headers = {name: str(value, "utf-8") for name, value in dict(found.headers() or {}).items()}  # type: ignore[arg-type]
        body = _dead(headers) if str(found.topic()).endswith(".dead") else found.value() or b""
        return headers["correlation-id"], body


BUSES: tuple[type[Library], ...] = (Nats, NatsQueue, Kafka)
DOORS: tuple[type[Library], ...] = (Library, Http, Socket, PackedSocket, Agents, Grpc, GrpcStream, *BUSES)
KEPT: tuple[type[Kept], ...] = (NatsQueue, Kafka)
GUARDED: tuple[type[Library], ...] = (Http, Socket, PackedSocket, AgentsOverHttp, Grpc, GrpcStream, *BUSES)
OTHERWISE = {
    "server.frontier": "it neither asks nor tells: tests/gateway/urlfrontier",
}


@asynccontextmanager
async def answering(service: Service, app: ASGIApp) -> AsyncIterator[int]:
    """An application on a port of its own."""
    ready, listener = asyncio.Event(), bound("127.0.0.1", 0)
    server = serve.serving(app, service.config, ready.set, service.load)
    running = asyncio.create_task(server.serve([listener]))
    await ready.wait()
    try:
        yield int(listener.getsockname()[1])
    finally:
        server.should_exit = True
        await running


def _nats_server(stack: AsyncExitStack, jetstream: bool) -> NatsServer:
    server = NatsServer(Path(stack.enter_context(TemporaryDirectory())), jetstream)
    stack.callback(server.stop)
    return server


async def _joined(service: Service, stack: AsyncExitStack, prefix: str, **buses: Any) -> tuple[str, str]:
    """The address of the bus and the prefix, once the guide is there."""
    bus = BusOptions(prefix=prefix, redeliver_s=6.0, **buses)
    service.config = msgspec.structs.replace(service.config, bus=bus)
    door = BusDoor(service)
    await door.open()
    stack.push_async_callback(door.close)
    async with asyncio.timeout(WITHIN_S):
        await door.buses[0].joined.wait()
    return bus.nats or bus.kafka, bus.prefix


@contextmanager
def _answers_at_once() -> Iterator[None]:
    """The mock cluster lets a request for messages wait to its end, where a broker answers when one comes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kafka, "FETCH_WAIT_MS", 5)
        yield


def _dead(headers: Mapping[str, str]) -> bytes:
    """A dead letter as an error."""
    field = unquote(headers["field"]) if "field" in headers else None
    body = {"code": headers["code"], "message": unquote(headers["error"]), "field": field, "retry_after_s": None}
    return msgspec.json.encode({"error": body})


def _desk(service: Service) -> Desk:
    return Desk(GuardedGuide(service), Searches(SearchOptions()))


def _goodbye(end: ConnectionClosed) -> bytes:
    """What a socket was closed with, as an error."""
    assert end.rcvd is not None
    if end.rcvd.code == TOO_BIG:
        return wire.error(TooLarge(end.rcvd.reason))
    assert end.rcvd.code == REFUSED, end
    code, _, words = end.rcvd.reason.partition(": ")
    return json.dumps({"error": {"code": code, "message": words, "field": None, "retry_after_s": None}}).encode()


async def _ended(stream: Any) -> bytes:
    return _error(await stream.code(), await stream.details(), await stream.trailing_metadata())


def _status(problem: grpc.aio.AioRpcError) -> bytes:
    return _error(problem.code(), problem.details(), problem.trailing_metadata())


def _error(code: grpc.StatusCode, words: str | None, trailing: Any) -> bytes:
    """The status of a call as an error; what is too large gRPC refuses by itself, without details."""
    said = dict(trailing or ())
    if "grpc-status-details-bin" not in said:
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED, (code, words)
        return wire.error(TooLarge(words or ""))
    found, wait = details_of(said), None
    if "RetryInfo" in found:
        wait = found["RetryInfo"].retry_delay.ToNanoseconds() / 1e9
    field = found["BadRequest"].field_violations[0].field if "BadRequest" in found else None
    body = {"code": found["ErrorInfo"].reason, "message": words, "field": field, "retry_after_s": wait}
    return msgspec.json.encode({"error": body})


async def _encoded(answer: Awaitable[Any]) -> bytes:
    try:
        return msgspec.json.encode(await answer)
    except CrawlGuideError as problem:
        return wire.error(problem)
