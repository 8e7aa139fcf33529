"""The WebSocket door at `/ws`: who may come in, how many, and who is cut."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from crawlguide.core.errors import CrawlGuideError, Draining, NotFound, UnavailableError
from crawlguide.core.turns import in_turns
from crawlguide.gateway.http import SOCKETS
from crawlguide.gateway.responses import STATUS, problem_response
from crawlguide.gateway.watched_files import LOOKS_EVERY_S
from crawlguide.gateway.websocket import codecs
from crawlguide.gateway.websocket.session import Session

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from crawlguide.gateway.access.credential import Credential
    from crawlguide.gateway.service import Service
    from crawlguide.gateway.websocket.connection import Connection

PATH = SOCKETS
LOOKED_AT_ONCE = 200
LOOKS_PER_STALL = 10  # whoever does not read is cut a little late; ten thousand sockets take a while to look at


class Sockets:
    """All open sockets of one door. An ASGI application for scopes of type `websocket`, over `Connection`s alone."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._open: set[Session] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        try:
            self._enter(scope)
        except CrawlGuideError as problem:
            state = scope["state"]
            who = {"address": state["caller"].address, **state["credential"].logged} if "caller" in state else {}
            self._service.log_refusal(PATH, STATUS[problem.code], problem, **who)
            await problem_response(problem)(scope, receive, send)
            return
        connection: Connection = scope["state"]["connection"]
        codec, name = codecs.agreed(scope["subprotocols"])
        session = Session(connection, self._service, scope["state"]["caller"], codec)
        self._open.add(session)
        try:
            await send({"type": "websocket.accept", "subprotocol": name})
            connection.open(session.receive, codec, self._service.options.socket_buffer_bytes)
            await connection.lost.wait()
            await session.end()
        except asyncio.CancelledError:  # the server's patience has ended; leases end by themselves
            connection.transport.abort()
        finally:
            self._open.discard(session)
            self._service.load.places.leave(scope["state"]["credential"])

    def leave(self) -> None:
        """The server ends: say so to all, and close each socket when it has its answers."""
        for session in tuple(self._open):
            session.leave()

    async def watch(self) -> None:
        """Cut whoever does not take what was sent, or may not be here any more. Runs until it is cancelled."""
        most_s = self._service.options.socket_stall_s
        while True:
            await asyncio.sleep(min(most_s / LOOKS_PER_STALL, LOOKS_EVERY_S))
            now = asyncio.get_running_loop().time()
            async for some in in_turns(tuple(self._open), LOOKED_AT_ONCE):
                for session in some:
                    if session.connection.stalled(now, most_s):
                        session.connection.transport.abort()
                    else:
                        session.check_credential()

    def count(self) -> int:
        """How many are open."""
        return len(self._open)

    def _enter(self, scope: Scope) -> None:
        """Take a place, or raise why there is none."""
        if scope["path"] != PATH:
            raise NotFound(f"no such page: {scope['path'][:200]}; sockets are opened at {PATH}")
        if self._service.draining:
            raise Draining("the server is shutting down; connect elsewhere", retry_after_s=1.0)
        if len(self._open) >= self._service.options.max_sockets:
            raise UnavailableError(f"more than {self._service.options.max_sockets} sockets at once", retry_after_s=1.0)
        credential: Credential = scope["state"]["credential"]
        self._service.load.places.enter(credential, self._service.entrance.most_sockets(credential.tenant))
