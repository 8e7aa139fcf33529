"""A line to the WebSocket door, and messages for it."""

from __future__ import annotations

import asyncio
import json
import subprocess
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
from tests.gateway.conftest import SCRIPT, Served, _port
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from crawlguide.core.messages import VERSION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

FREE = {"policy": {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0}}
SOON_S, QUIET_S = 10.0, 0.4
PAGE = Path(__file__).resolve().parents[3] / "docs" / "websocket.md"
TEXT, PACKED = "crawlguide.json", "crawlguide.msgpack"
Message = dict[str, Any]


class Line:
    """One socket, speaking dictionaries, written as it agreed with the server."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        packed = socket.subprotocol == PACKED
        self.write: Callable[[Any], str | bytes] = msgspec.msgpack.encode if packed else json.dumps
        self._read: Callable[[Any], Any] = msgspec.msgpack.decode if packed else json.loads
        self._kind = bytes if packed else str

    async def say(self, kind: str, name: object, **fields: Any) -> None:
        await self.socket.send(self.write({"type": kind, "id": name, **fields}))

    async def hear(self, within_s: float = SOON_S) -> Message:
        async with asyncio.timeout(within_s):
            heard = await self.socket.recv()
        assert isinstance(heard, self._kind)
        message: Message = self._read(heard)
        return message

    async def call(self, kind: str, name: object, **fields: Any) -> Message:
        await self.say(kind, name, **fields)
        return await self.hear()

    async def is_quiet(self) -> bool:
        try:
            await self.hear(QUIET_S)
        except TimeoutError:
            return True
        return False

    async def until_closed(self) -> tuple[list[Message], int | None]:
        """Hear all there is, until the end; and the code of the goodbye."""
        heard = []
        try:
            while True:
                heard.append(await self.hear())
        except ConnectionClosed as end:
            return heard, end.rcvd.code if end.rcvd else None

    async def closed_with(self) -> int | None:
        return (await self.until_closed())[1]


@asynccontextmanager
async def opened(server: Served, *codecs: str, **options: Any) -> AsyncIterator[Line]:
    offered = [Subprotocol(name) for name in codecs] or None
    async with connect(f"ws://127.0.0.1:{server.port}/ws", subprotocols=offered, proxy=None, **options) as door:
        yield Line(door)


@contextmanager
def tuned(folder: Path, data: str = ":memory:", **options: float) -> Iterator[Served]:
    """A server of its own with these options."""
    lines = "\n".join(f"{name} = {value}" for name, value in options.items())
    (folder / "crawlguide.toml").write_text(f"[server]\n{lines}\n")
    ready, stderr = folder / "ready.json", folder / "stderr.txt"
    ready.unlink(missing_ok=True)
    command = [str(SCRIPT), "serve", "--data", data, "--port", "0", "--ready-file", str(ready)]
    with stderr.open("w") as said, subprocess.Popen(command, stderr=said, text=True, cwd=folder) as process:
        try:
            yield Served(process, _port(process, ready, stderr), stderr)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(20)
    assert "Traceback" not in stderr.read_text(), stderr.read_text()


def ask(crawl: str, max_urls: int = 1, **more: Any) -> Message:
    return {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "budget": {"max_urls": max_urls}} | more


def tell(crawl: str, *urls: str, **more: Any) -> Message:
    fetches = [{"url": url, "status": 200} for url in urls]
    return {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "fetches": fetches} | more


def wish(crawl: str, max_urls: int, **budget: Any) -> Message:
    return {"crawler_id": "c-1", "crawl_id": crawl, "budget": {"max_urls": max_urls, **budget}}


def prepare(
    server: Served, crawl: str, count: int, definition: Message = FREE, url: str = "https://h{}.example/"
) -> None:
    """A crawl, without politeness unless it says otherwise, and so many seeds."""
    urls = [url.format(number) for number in range(count)]
    with httpx.Client(base_url=server.url, trust_env=False, timeout=30.0) as door:
        assert door.put(f"/v1/crawls/{crawl}", json=definition).status_code == 201
        assert door.post(f"/v1/crawls/{crawl}/seeds", json={"urls": urls}).status_code == 200


def post(server: Served, path: str, message: Message) -> httpx.Response:
    return httpx.post(server.url + path, json=message, trust_env=False, timeout=30.0)


def get(server: Served, path: str) -> httpx.Response:
    return httpx.get(server.url + path, trust_env=False, timeout=30.0)


def states(server: Served, crawl: str) -> tuple[int, int]:
    """How many are queued, how many leased."""
    answer = get(server, f"/v1/stats?crawl_id={crawl}").json()
    return answer["crawls"][crawl]["queued"], answer["crawls"][crawl]["leased"]


async def comes_to(server: Served, crawl: str, expected: tuple[int, int]) -> None:
    async with asyncio.timeout(SOON_S):
        while (found := await asyncio.to_thread(states, server, crawl)) != expected:
            await asyncio.sleep(0.05)
            assert found


def urls_of(assignment: Message) -> list[str]:
    assert assignment["type"] in {"assignment", "next"}, assignment
    return [one["url"] for one in assignment["assigned_urls"]]
