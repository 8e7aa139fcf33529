"""Accepts connections while there is room for them, and tells others at once that there is none.

asyncio's own server accepts whatever comes: it counts nothing before a TLS handshake has ended, and takes descriptors
until none is left for the store.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from crawlguide.core.errors import ConfigError, UnavailableError
from crawlguide.gateway.http_connection import HttpConnection, LastWords, response

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from crawlguide.gateway.load import Load
    from crawlguide.gateway.tls import Certificates

    Connect = Callable[[Callable[[], None]], HttpConnection]  # makes one that calls back when it is gone

ACCEPTED_AT_ONCE = 64
KEEP_ALIVE = {socket.TCP_KEEPIDLE: 60, socket.TCP_KEEPINTVL: 15, socket.TCP_KEEPCNT: 4}
REST_S = 0.1  # after an error, such as no descriptors: they come back by themselves
HANDSHAKE_S, GOODBYE_S = 10.0, 2.0
MOST_LAST_WORDS = 64  # who is refused while so many are listened to is told, but not listened to


def bound(host: str, port: int, setting: str = "server.port") -> socket.socket:
    """A listening socket, so that port 0 is known before anything starts. Raises `ConfigError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # connections inherit it: dead ones are noticed
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for number, value in KEEP_ALIVE.items():
        listener.setsockopt(socket.IPPROTO_TCP, number, value)
    try:
        listener.bind((host, port))
    except OSError as problem:
        listener.close()
        option = setting.removeprefix("server.").replace("_", "-")
        hints = {
            errno.EADDRINUSE: f"; another server may run there: name another with --{option}, 0 picks a free one",
            errno.EADDRNOTAVAIL: "; this machine has no such address: correct --host",
        }
        words = f"{setting}: cannot listen on {host}:{port}: {problem.strerror}"
        raise ConfigError(words + hints.get(problem.errno or 0, "")) from None
    listener.listen(2_048)
    listener.setblocking(False)
    return listener


class Listener:
    """In place of an asyncio server: uvicorn closes it when it shuts down."""

    def __init__(self, listening: socket.socket, load: Load, certificates: Certificates, connect: Connect) -> None:
        self._listening, self._load, self._certificates, self._connect = listening, load, certificates, connect
        self._loop = asyncio.get_running_loop()
        self._beginning: set[asyncio.Task[None]] = set()
        self._last_words = 0
        self._closed = False
        self._loop.add_reader(listening, self._accept)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._listening)
            for task in self._beginning:
                task.cancel()

    async def wait_closed(self) -> None:
        if self._beginning:
            await asyncio.wait(self._beginning)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                line, address = self._listening.accept()
            except (BlockingIOError, ConnectionAbortedError, InterruptedError):
                return
            except OSError:
                self._rest()
                return
            line.setblocking(False)
            self._admit(line, address[0])

    def _rest(self) -> None:
        self._loop.remove_reader(self._listening)
        self._loop.call_later(REST_S, self._go_on)

    def _go_on(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._listening, self._accept)

    def _admit(self, line: socket.socket, address: str) -> None:
        try:
            self._load.connections.enter(address)
        except UnavailableError as problem:
            self._load.refused(problem)
            self._turn_away(line, problem)
        else:
            self._do(self._begin(line, lambda: self._load.connections.leave(address)))

    async def _begin(self, line: socket.socket, left: Callable[[], None]) -> None:
        """The handshake, if there is one. A client that fails in it has nobody to complain to."""
        try:
            context = self._certificates.context()
        except OSError:
            line.close()
            left()
            return
        times = {"ssl_handshake_timeout": HANDSHAKE_S, "ssl_shutdown_timeout": GOODBYE_S} if context else {}
        connection = self._connect(left)
        try:
            await self._loop.connect_accepted_socket(lambda: connection, line, ssl=context, **times)
        except (OSError, asyncio.CancelledError):
            line.close()
            if connection.transport is None:  # else it is told that the connection is lost
                left()

    def _turn_away(self, line: socket.socket, problem: UnavailableError) -> None:
        """Within TLS nothing can be said without a handshake, and that is dear."""
        words = b"" if self._certificates.context() else response(problem, last=True)
        if words and self._last_words < MOST_LAST_WORDS:
            self._last_words += 1
            self._do(self._say(line, LastWords(words, self._said)))
            return
        with line, suppress(OSError):
            line.send(words)

    async def _say(self, line: socket.socket, words: LastWords) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: words, line)
        except OSError:
            line.close()
            self._said(None)

    def _said(self, _: Exception | None) -> None:
        self._last_words -= 1

    def _do(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)
