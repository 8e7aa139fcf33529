"""Asks over WebSockets: how many are answered in a second by a server that shares one core with its clients."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.gateway.websocket import frames
from crawlguide.lab.speed.frontier import ask_body
from crawlguide.lab.speed.over_http import urls_in

if TYPE_CHECKING:
    from crawlguide.lab.speed.server import Server

SOCKETS = 8
HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


class Socket:
    """One WebSocket, as plain as can be: the client shares the machine with what it measures."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def to(cls, port: int) -> Socket:
        socket = cls(*await asyncio.open_connection("127.0.0.1", port))
        socket._writer.write(HANDSHAKE)
        answer = await socket._reader.readuntil(b"\r\n\r\n")
        if b" 101 " not in answer:
            raise RuntimeError(f"no socket: {answer[:200]!r}")
        return socket

    async def call(self, body: bytes) -> bytes:
        self._writer.write(masked(body))
        head = await self._reader.readexactly(2)
        more = {126: 2, 127: 8}.get(head[1], 0)
        size = int.from_bytes(await self._reader.readexactly(more), "big") if more else head[1]
        return await self._reader.readexactly(size)

    def close(self) -> None:
        self._writer.transport.abort()


def masked(body: bytes) -> bytes:
    """A text frame with the mask zero, which is one like any other."""
    whole = frames.message(frames.TEXT, [body])
    head = len(whole) - len(body)
    return bytes((whole[0], whole[1] | frames.MASKED)) + whole[2:head] + bytes(4) + body


async def measure_over_sockets(server: Server, asks: int) -> dict[str, Any]:
    """All sockets ask without a pause, each its share."""
    sockets = [await Socket.to(server.port) for _ in range(SOCKETS)]
    each, given = asks // SOCKETS, 0

    async def talk(number: int, socket: Socket) -> None:
        nonlocal given
        for n in range(each):
            answer = await socket.call(msgspec.json.encode({"type": "next", "id": n} | ask_body(f"s{number}-{n}")))
            if not answer.startswith(b'{"type":"next"'):
                raise RuntimeError(f"no answer: {answer[:200]!r}")
            given += urls_in(answer)

    began, cpu = time.perf_counter(), server.cpu_ns()
    await asyncio.gather(*(talk(number, socket) for number, socket in enumerate(sockets)))
    took, spent = time.perf_counter() - began, server.cpu_ns() - cpu
    for socket in sockets:
        socket.close()
    answered = each * SOCKETS
    return {
        "socket_asks_per_s": answered / took,
        "socket_ask_cpu_us": spent / answered / 1e3,
        "socket_urls_per_ask": given / answered,
    }
