"""Whose page is this? A page of somebody else's must not reach the server through a visitor's browser.

Any page may send a form, or a request with a body that a form could send, to any server, and open a WebSocket; the
browser says so in `Origin` and `Sec-Fetch-Site`. And a name server may say that evil.example is 127.0.0.1 after a
browser has loaded a page from there (DNS rebinding): the browser then takes the guide for a part of that page. But it
still calls it evil.example.
"""

from __future__ import annotations

from functools import lru_cache
from socket import gethostname
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from crawlguide.core.errors import Forbidden
from crawlguide.gateway.headers import headers_of
from crawlguide.gateway.responses import STATUS, problem_response
from crawlguide.policy.addresses import address_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

    Refused = Callable[..., None]  # is told of the page, the status, the problem and the `address`

ANY = "*"
HEALTH = ("/healthz", "/readyz")  # say nothing, and are asked by machines
LOOKS_ONLY = ("GET", "HEAD", "OPTIONS")
OWN_SITES = ("same-origin", "none")  # none: somebody has typed the address
FORM, OTHER_FORMS = "application/x-www-form-urlencoded", ("text/plain", "multipart/form-data")
HOST_NAME = gethostname().lower()
NAMES_REMEMBERED = 100  # of hosts: callers say few, but each with every request
USUAL_PORTS = {"http": ":80", "https": ":443"}


class BrowserCheck:
    """Passes on what calls this machine by a name it may be called by, and comes from no page of another site.

    Where credentials are wanted (`guarded`) any name will do: a page that calls the server by its own has none to show.
    """

    def __init__(
        self,
        app: ASGIApp,
        allowed: Collection[str],
        refused: Refused = lambda *_, **__: None,
        guarded: Callable[[], bool] = lambda: False,
    ) -> None:
        self._app, self._refused, self._guarded = app, refused, guarded
        self._allowed = frozenset(name.lower().rstrip(".") for name in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = self._objection(scope) if scope["type"] in ("http", "websocket") else None
        if problem is None:
            await self._app(scope, receive, send)
        else:
            address = (scope.get("client") or ("",))[0]
            self._refused(scope["path"][:200], STATUS[problem.code], problem, address=address)
            await problem_response(problem)(scope, receive, send)

    def permits(self, host: str) -> bool:
        """Whoever says no name at all is no browser, and an address cannot be led elsewhere by a name server."""
        name = _without_port(host).lower().rstrip(".")
        return not name or ANY in self._allowed or name in self._allowed or _is_this_machine(name) or self._guarded()

    def _objection(self, scope: Scope) -> Forbidden | None:
        if scope["path"] in HEALTH:
            return None
        headers = headers_of(scope)
        host = headers.get("host", "")
        if not self.permits(host):
            words = f"host: expected a name of this machine, or one of server.allowed_hosts, got {host[:100]!r}"
            return Forbidden(words, field="host")
        return None if scope.get("method") in LOOKS_ONLY else objection(headers)


def objection(headers: Mapping[str, str]) -> Forbidden | None:
    """Why a request that may change something is refused, as far as its headers say whose page has sent it."""
    site = headers.get("sec-fetch-site", "none").lower()
    if is_foreign(headers) or site not in OWN_SITES:
        return Forbidden("origin: pages of other sites may not do anything here", field="origin")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if "origin" in headers or kind not in (FORM, *OTHER_FORMS):
        return None
    if kind in OTHER_FORMS or _looks_like_a_browser(headers):
        return Forbidden(f"content-type: expected application/json, got {kind}, as a web page sends it unasked")
    return None  # curl -d


def is_foreign(headers: Mapping[str, str]) -> bool:
    """Does a page of another place send this? Crawlers name no page at all."""
    origin = headers.get("origin")
    return origin is not None and _place(origin) != _host(headers, origin)


def _place(origin: str) -> str | None:
    """Where a page comes from, without the scheme: a proxy may speak TLS for us. None is no place of ours."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    return parts.netloc.lower().removesuffix(USUAL_PORTS.get(parts.scheme, "")) or None


def _host(headers: Mapping[str, str], origin: str) -> str:
    """What is called, written as the origin is: without the port that goes without saying."""
    usual = USUAL_PORTS.get(origin.partition(":")[0].lower(), "")
    return headers.get("host", "").lower().removesuffix(usual)


def _looks_like_a_browser(headers: Mapping[str, str]) -> bool:
    """Those of before 2020 say neither where a form comes from nor on whose behalf; but all call themselves so."""
    return headers.get("user-agent", "").startswith("Mozilla/") or "referer" in headers


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


@lru_cache(NAMES_REMEMBERED)
def _is_this_machine(name: str) -> bool:
    """By its name, or by an address of whatever kind."""
    named = name in ("localhost", HOST_NAME) or name.endswith(".localhost")
    return named or address_of(name.strip("[]")) is not None
