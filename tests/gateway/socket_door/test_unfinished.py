"""Messages of which the rest does not come. The door is in this process; times are shortened."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from tests.gateway.http_door.test_connection import on_uvloop, until
from tests.gateway.socket_door.common import Line
from tests.gateway.socket_door.test_socket_limits import unfinished
from websockets.asyncio.client import connect

from crawlguide.core.config import Config
from crawlguide.gateway import serve
from crawlguide.gateway.listener import bound
from crawlguide.gateway.opening import open_guide
from crawlguide.gateway.service import Service
from crawlguide.gateway.websocket import connection
from crawlguide.gateway.websocket.sockets import Sockets

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PART = bytes((0x01, 0x80 | 5)) + bytes(4) + b'{"typ'
REST = bytes((0x80, 0x80 | 18)) + bytes(4) + b'e":"ping","id":12}'
PING = bytes((0x89, 0x80 | 2)) + bytes(4) + b"hi"


@asynccontextmanager
async def opened(config: Config) -> AsyncIterator[tuple[Service, Line]]:
    ready, service = asyncio.Event(), Service(open_guide(":memory:", config), config)
    listener = bound("127.0.0.1", 0)
    server = serve.Server(
        serve._uvicorn(serve.checked(service, Sockets(service)), config), ready.set, load=service.load
    )
    running = asyncio.create_task(server.serve([listener]))
    await ready.wait()
    async with connect(f"ws://127.0.0.1:{listener.getsockname()[1]}/ws", proxy=None) as line:
        yield service, Line(line)
    server.should_exit = True
    await running
    await service.guide.close()


@pytest.mark.parametrize("start", [unfinished(100, 200), unfinished(0, 200), PART, PART + PING, b"\x81"])
@on_uvloop
async def test_a_message_of_which_the_rest_does_not_come_closes_with_1008(
    monkeypatch: pytest.MonkeyPatch, start: bytes
) -> None:
    monkeypatch.setattr(connection, "MESSAGE_WITHIN_S", 0.3)
    async with opened(Config()) as (service, line):
        line.socket.transport.write(start)
        assert await line.closed_with() == 1008
        assert service.load.bodies.held_bytes == 0


@on_uvloop
async def test_what_comes_whole_is_no_longer_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MESSAGE_WITHIN_S", 0.3)
    async with opened(Config()) as (service, line):
        for _ in range(5):
            line.socket.transport.write(PING + PART + PING)
            await until(lambda: service.load.bodies.held_bytes == len(PART))
            await asyncio.sleep(0.1)
            line.socket.transport.write(PING + REST + PING)
            assert await line.hear() == {"type": "pong", "id": 12}
            await until(lambda: service.load.bodies.held_bytes == 0)
        await asyncio.sleep(0.5)
        assert (await line.call("ping", 1))["type"] == "pong"
