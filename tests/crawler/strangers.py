"""A server on this machine that answers each path with the bytes a test lays there, also such as no server sends."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from crawlguide.crawler.fetch import Fetcher, FetchOptions

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable

    Play = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

LOOPBACK = ("127.0.0.0/8",)


class Stranger:
    """What is laid is bytes, or a play that writes them."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.requests: list[bytes] = []
        self.laid: dict[str, bytes | Play] = {}
        self.at_work: set[asyncio.Task[None]] = set()

    def url(self, path: str = "/", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    def lay(self, path: str, body: bytes = b"", status: str = "200 OK", **headers: str) -> str:
        """An answer as it should be, at a path; returns its URL."""
        named = {"Content-Length": str(len(body))} | {name.replace("_", "-"): text for name, text in headers.items()}
        head = [f"HTTP/1.1 {status}", *(f"{name}: {text}" for name, text in named.items())]
        return self.lay_raw(path, "\r\n".join([*head, "", ""]).encode() + body)

    def lay_raw(self, path: str, answer: bytes | Play) -> str:
        self.laid[path] = answer
        return self.url(path)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self.at_work.add(task)
        try:
            await self._play(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()  # nobody reads any more what is not sent yet
            raise
        finally:
            writer.transport.close()
            self.at_work.discard(task)

    async def _play(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                self.requests.append(request)
                laid = self.laid.get(
                    request.split()[1].decode(), b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
                )
                if not isinstance(laid, bytes):
                    await laid(reader, writer)
                    break
                writer.write(laid)
                await writer.drain()
                if b"Content-Length" not in laid:
                    break


@asynccontextmanager
async def stranger(tls: ssl.SSLContext | None = None) -> AsyncIterator[Stranger]:
    there = Stranger()
    server = await asyncio.start_server(there.answer, "127.0.0.1", 0, ssl=tls)
    there.port = server.sockets[0].getsockname()[1]
    try:
        yield there
    finally:
        server.close()
        for task in list(there.at_work):
            task.cancel()
        await asyncio.gather(*there.at_work, return_exceptions=True)


def local(**options: object) -> Fetcher:
    """A fetcher that may reach this machine."""
    return Fetcher(FetchOptions(allow_networks=LOOPBACK, **options))  # type: ignore[arg-type]
