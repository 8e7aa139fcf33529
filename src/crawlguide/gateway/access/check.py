"""A layer around the doors for HTTP and WebSockets that asks the entrance: nothing behind it is reached otherwise.

It leaves `credential` and `caller` in the state of the scope.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import MutableHeaders
from starlette.responses import RedirectResponse

from crawlguide.core.errors import CrawlGuideError, Unauthenticated
from crawlguide.gateway.access import logins
from crawlguide.gateway.access.entrance import OPEN_HEADER, OPEN_WORDS, Caller
from crawlguide.gateway.browsers import HEALTH
from crawlguide.gateway.headers import headers_of
from crawlguide.gateway.responses import STATUS, fault_of_ours, problem_response

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from crawlguide.gateway.access.entrance import Entrance

FREE = ("/login", "/logout", "/docs", "/openapi.json")  # they show nothing of anybody's
FREE_FOLDER = "/static/"
LOGIN, ANY_REQUEST = "/login", "a request"
SAFE = ("GET", "HEAD")


class AccessCheck:
    """Passes on whoever the entrance admits."""

    def __init__(self, app: ASGIApp, entrance: Entrance, log_refusal: Callable[..., None]) -> None:
        self._app, self._entrance, self._log_refusal = app, entrance, log_refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or scope["path"] in HEALTH:
            await self._app(scope, receive, send)
            return
        caller = self._caller(scope, headers_of(scope))
        state = scope["state"]
        try:
            if _is_free(scope["path"]):
                self._entrance.knock(caller.address)
            else:
                state["credential"], state["caller"] = self._entrance.admit(caller), caller
        except CrawlGuideError as problem:
            self._log_refusal(ANY_REQUEST, STATUS[problem.code], problem, **caller.logged)
            await self._refuse(scope, receive, send, problem)
            return
        except Exception as fault:  # noqa: BLE001 - whatever it is, nobody comes in by it
            self._log_refusal(ANY_REQUEST, 500, fault_of_ours(fault), **caller.logged)
            await self._refuse(scope, receive, send, fault_of_ours(fault))
            return
        await self._app(scope, receive, _said_open(send) if self._entrance.is_open_to_all else send)

    def _caller(self, scope: Scope, headers: Mapping[str, str]) -> Caller:
        authorization = headers.get("authorization", "")
        if not authorization and scope.get("method") in SAFE and "cookie" in headers:
            authorization = self._entrance.logins.authorization(logins.cookie_in(headers["cookie"])) or ""
        client = scope.get("client")
        return Caller(client[0] if client else "", authorization, scope["state"].get("peer_certificate"))

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, problem: CrawlGuideError) -> None:
        if isinstance(problem, Unauthenticated) and scope["type"] == "http" and _wants_page(scope):
            await RedirectResponse(LOGIN, 303)(scope, receive, send)
            return
        await problem_response(problem)(scope, receive, send)


def _is_free(path: str) -> bool:
    return path in FREE or path.startswith(FREE_FOLDER)


def _wants_page(scope: Scope) -> bool:
    """A browser in which somebody looks at the status page."""
    page = scope["path"] == "/" or scope["path"].startswith("/crawls/")
    return page and scope["method"] in SAFE and "text/html" in headers_of(scope).get("accept", "")


def _said_open(send: Send) -> Send:
    """Every answer says that there is no lock on the door."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)[OPEN_HEADER] = OPEN_WORDS
        await send(message)

    return sent
