"""The hosts as one process: answers pages after a moment, and writes down when each request came.

python -m tests.politeness.served PORT COUNT LOG
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.politeness import web

ANSWERS_AFTER_S = 0.02
Seen = tuple[str, str, float]  # address, path, seconds of the machine's clock


@dataclass
class Visit(asyncio.Protocol):
    """One connection, one request."""

    host: web.Host
    seen: list[Seen]
    head: bytes = b""
    transport: asyncio.Transport | None = field(default=None, init=False)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        at = time.monotonic()
        self.head += data
        if b"\r\n\r\n" in self.head:
            path = self.head.split(b" ", 2)[1].decode()
            self.seen.append((self.host.address, path, at))
            asyncio.get_running_loop().call_later(ANSWERS_AFTER_S, self.answer, path)

    def answer(self, path: str) -> None:
        assert self.transport is not None
        body = web.robots(self.host) if path == "/robots.txt" else web.title(path).encode()
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
        self.transport.close()


async def main(port: int, count: int, log: Path) -> None:
    """Until it is told to end; then what was seen is in `log`."""
    loop, seen, ended = asyncio.get_running_loop(), list[Seen](), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    for host in web.hosts(port, count):
        await loop.create_server(lambda host=host: Visit(host, seen), host.address, port)  # type: ignore[misc]
    log.with_suffix(".ready").touch()
    await ended.wait()
    log.write_text(json.dumps(seen))  # noqa: ASYNC240 - nobody is served any more


def free_port() -> int:
    """A port that is most likely free at the addresses of all hosts."""
    with socket.socket() as listener:
        listener.bind(("127.0.1.1", 0))
        return int(listener.getsockname()[1])


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
