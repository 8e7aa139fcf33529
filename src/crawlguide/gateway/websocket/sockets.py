"""The WebSocket door at `/ws`: who may come in, how many, and who is cut."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from crawlguide.core.errors import Draining, Forbidden, NotFound, UnavailableError
from crawlguide.core.messages import AskMessage, ReleaseMessage, ReportMessage
from crawlguide.gateway import wire
from crawlguide.gateway.http import JSON, SOCKETS, STATUS
from crawlguide.gateway.websocket.assigned import AssignedUrls
from crawlguide.gateway.websocket.session import Session

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from crawlguide.core.errors import CrawlGuideError
    from crawlguide.gateway.http import Door
    from crawlguide.gateway.routes import RouteCall
    from crawlguide.gateway.websocket.connection import Connection

PATH = SOCKETS
LOOKS_PER_STALL = 10  # whoever does not read is cut a little late; ten thousand sockets take a while to look at


class Sockets:
    """All open sockets of one door. An ASGI application for scopes of type `websocket`, over `Connection`s alone."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._open: set[Session] = set()
        self._assigned = AssignedUrls()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        problem = self._objection(scope)
        if problem is not None:
            self._door.log_refusal(PATH, STATUS[problem.code], problem)
            await _refuse(send, problem)
            return
        connection: Connection = scope["state"]["connection"]
        session = Session(connection, self._door, self._assigned)
        self._open.add(session)
        try:
            await send({"type": "websocket.accept"})
            connection.open(session.receive, self._door.options.socket_buffer_bytes)
            await connection.lost.wait()
            await session.end()
        except asyncio.CancelledError:  # the server's patience has ended; leases end by themselves
            connection.transport.abort()
        finally:
            self._open.discard(session)

    def served(self, call: RouteCall) -> None:
        """A call was served over HTTP: what it reports or releases is no longer held."""
        message = call.message
        if isinstance(message, ReleaseMessage):
            self._assigned.released(call.crawl.name, message.crawler_id)
        elif isinstance(message, ReportMessage):
            self._assigned.reported(message.crawl_id, message.fetches)
        elif isinstance(message, AskMessage) and message.context is not None:
            self._assigned.reported(message.crawl_id, message.context.recent_history or ())

    def leave(self) -> None:
        """The server ends: say so to all, and close each socket when it has its answers."""
        for session in tuple(self._open):
            session.leave()

    async def watch(self) -> None:
        """Cut whoever does not take what was sent. Runs until it is cancelled."""
        most_s = self._door.options.socket_stall_s
        while True:
            await asyncio.sleep(most_s / LOOKS_PER_STALL)
            now = asyncio.get_running_loop().time()
            for session in tuple(self._open):
                if session.connection.stalled(now, most_s):
                    session.connection.transport.abort()

    def count(self) -> int:
        """How many are open."""
        return len(self._open)

    def _objection(self, scope: Scope) -> CrawlGuideError | None:
        if scope["path"] != PATH:
            return NotFound(f"no such page: {scope['path'][:200]}; sockets are opened at {PATH}")
        if _is_foreign({name.lower(): value for name, value in scope["headers"]}):
            return Forbidden("origin: pages of other sites may not open sockets here")
        if self._door.draining:
            return Draining("the server is shutting down; connect elsewhere", retry_after_s=1.0)
        if len(self._open) >= self._door.options.max_sockets:
            return UnavailableError(f"more than {self._door.options.max_sockets} sockets at once", retry_after_s=1.0)
        return None


def _is_foreign(headers: dict[bytes, bytes]) -> bool:
    """A browser says whose page opens the socket; crawlers say nothing."""
    origin = headers.get(b"origin")
    if origin is None:
        return False
    try:
        place = urlsplit(origin.decode("latin-1")).netloc
    except ValueError:
        return True
    return place.lower() != headers.get(b"host", b"").decode("latin-1").lower()


async def _refuse(send: Send, problem: CrawlGuideError) -> None:
    """An answer in HTTP instead of the handshake."""
    headers = [(b"content-type", JSON.encode())]
    if problem.retry_after_s is not None:
        headers.append((b"retry-after", str(max(1, round(problem.retry_after_s))).encode()))
    await send({"type": "websocket.http.response.start", "status": STATUS[problem.code], "headers": headers})
    await send({"type": "websocket.http.response.body", "body": wire.error(problem)})
