"""Every door as one small class with the same verbs, so that one test speaks for all: what is said goes in as a
dictionary, what is heard comes back as the JSON that HTTP would give, errors as well.

A new door is a class here and a name in `DOORS`. What it has no word for goes to the guide itself.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
from mcp import Client
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from crawlguide import AsyncGuide
from crawlguide.agents.calls import GuardedGuide
from crawlguide.agents.finding import Searches, SearchOptions
from crawlguide.agents.http import PATH, Guard, HttpDoor
from crawlguide.agents.server import Desk
from crawlguide.core.errors import CrawlGuideError, TooLarge
from crawlguide.core.messages import Released
from crawlguide.gateway import packed, serve, wire
from crawlguide.gateway.websocket.sockets import Sockets

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from starlette.types import ASGIApp

    from crawlguide.gateway.service import Service

Said = dict[str, Any]
CRAWL = "books"
TOO_BIG, REFUSED = 1009, 1008
WITHIN_S = 30.0
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


DOORS: tuple[type[Library], ...] = (Library, Http, Socket, PackedSocket, Agents)
GUARDED: tuple[type[Library], ...] = (Http, Socket, PackedSocket, AgentsOverHttp)
OTHERWISE = {
    "server.grpc": "to come",
    "bus": "to come",
    "server.urlfrontier": "it neither asks nor tells: tests/gateway/urlfrontier",
}


@asynccontextmanager
async def answering(service: Service, app: ASGIApp) -> AsyncIterator[int]:
    """An application on a port of its own."""
    ready, listener = asyncio.Event(), serve.bound("127.0.0.1", 0)
    server = serve.serving(app, service.config, ready.set, service.load)
    running = asyncio.create_task(server.serve([listener]))
    await ready.wait()
    try:
        yield int(listener.getsockname()[1])
    finally:
        server.should_exit = True
        await running


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


async def _encoded(answer: Awaitable[Any]) -> bytes:
    try:
        return msgspec.json.encode(await answer)
    except CrawlGuideError as problem:
        return wire.error(problem)
