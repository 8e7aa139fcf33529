"""The same server over streamable HTTP, behind the guard of every other door."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from crawlguide.core.errors import (
    CrawlGuideError,
    Draining,
    MalformedRequest,
    NotFound,
    RateLimited,
    UnavailableError,
)
from crawlguide.gateway import strict
from crawlguide.gateway.access.check import AccessCheck
from crawlguide.gateway.bodies import BodyLimits
from crawlguide.gateway.browsers import HEALTH, BrowserCheck
from crawlguide.gateway.responses import JSON, STATUS, problem_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server import Server
    from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
    from mcp.server.streamable_http import StreamableHTTPServerTransport
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from crawlguide.core.config import ServerOptions
    from crawlguide.gateway.access.credential import Credential
    from crawlguide.gateway.access.entrance import Entrance
    from crawlguide.gateway.load import Load

PATH = "/mcp"  # where agents look for a server of theirs
MOST_BYTES = 1024 * 1024  # of a message: models write short ones, and reading a long one keeps others waiting
MOST_SESSIONS, IDLE_S = 1_000, 1_800.0
MOST_OF_TENANT = MOST_SESSIONS // 4
AGAIN_S = 10.0


@dataclass(frozen=True)
class Guard:
    """What holds for every door: who may come in, how much at once, who is told of a refusal."""

    entrance: Entrance
    load: Load
    options: ServerOptions
    log_refusal: Callable[..., None]

    @property
    def most_bytes(self) -> int:
        return min(MOST_BYTES, self.options.max_message_bytes)

    def around(self, app: ASGIApp) -> ASGIApp:
        checked = AccessCheck(app, self.entrance, self.log_refusal)
        hosts, required = self.options.allowed_hosts, lambda: self.entrance.required
        return BodyLimits(BrowserCheck(checked, hosts, self.log_refusal, required), self.load, self.most_bytes)


class Sessions(StreamableHTTPSessionManager):
    """Those of the SDK. One tenant cannot have them all, and who cannot have one more is told so in our own words."""

    def __init__(self, server: Server[Any], guard: Guard) -> None:
        super().__init__(
            server, max_request_body_size=guard.most_bytes, session_idle_timeout=IDLE_S, max_sessions=MOST_SESSIONS
        )
        self._entrance = guard.entrance

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        """Nothing comes between this look at those that are open and the next one."""
        if requestor is not None and self._entrance.required:
            self._check_places(requestor)
        if len(self._server_instances) >= MOST_SESSIONS:
            raise UnavailableError(f"more than {MOST_SESSIONS} sessions at once", retry_after_s=AGAIN_S)
        return super()._admit_session(requestor)

    def _check_places(self, one: AuthorizationContext) -> None:
        of_credential, of_tenant = self._entrance.most_sockets(str(one["subject"]))
        tenants = [other for other in self._session_owners.values() if other["subject"] == one["subject"]]
        for kind, most, taken in (
            ("credential", of_credential, tenants.count(one)),
            ("tenant", min(of_tenant or MOST_OF_TENANT, MOST_OF_TENANT), len(tenants)),
        ):
            if most and taken >= most:
                words = f"your {kind}: expected at most {most} sessions at once; end one (DELETE), or let it rest"
                raise RateLimited(words, retry_after_s=AGAIN_S)


class HttpDoor:
    """One page for the agents' protocol, two that say whether this server lives."""

    def __init__(self, server: Server[Any], guard: Guard) -> None:
        self._guard = guard
        self.sessions = Sessions(server, guard)
        self.draining = False

    def app(self) -> ASGIApp:
        return self._guard.around(self._page)

    async def _page(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._answer(scope, receive)
            await answer(scope, receive, send)
        except CrawlGuideError as problem:
            address = (scope.get("client") or ("",))[0]
            self._guard.log_refusal(PATH, STATUS[problem.code], problem, address=address)
            await problem_response(problem)(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> ASGIApp:
        """Who answers; what is no request of theirs is refused in our own words, before the SDK reads it."""
        if scope["path"] in HEALTH:
            return Response(b'{"status":"alive"}', media_type=JSON)
        if scope["path"] != PATH or scope["type"] != "http":
            raise NotFound(f"no such page: {scope['path'][:200]}; agents are answered at {PATH}")
        if self.draining:
            raise Draining("the server is shutting down", retry_after_s=5.0)
        body = await _body(scope, receive)
        scope["user"] = _user(scope["state"]["credential"])
        scope["state"]["gone"] = gone = asyncio.Event()
        again = _heard(body, receive, gone)

        async def answered(scope: Scope, _: Receive, send: Send) -> None:
            await self.sessions.handle_request(scope, again, send)

        return answered


async def _body(scope: Scope, receive: Receive) -> bytes:
    """Within the limits, and as strict as that of every other door."""
    try:
        body = await Request(scope, receive).body()
    except ClientDisconnect:
        raise MalformedRequest("body: the connection ended in the middle of it") from None
    if body:
        strict.check(body)
    return body


def _user(credential: Credential) -> AuthenticatedUser:
    """By this the SDK lets nobody else into a session."""
    known = AccessToken(token="", client_id=credential.name, scopes=[], subject=credential.tenant)
    return AuthenticatedUser(known)


def _heard(body: bytes, receive: Receive, gone: asyncio.Event) -> Receive:
    """What was read is given once more; then who waits for the end of the connection sets `gone` when it comes."""
    parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def heard() -> Message:
        if parts:
            return parts.pop()
        message = await receive()
        if message["type"] == "http.disconnect":
            gone.set()
        return message

    return heard
