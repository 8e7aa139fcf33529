"""By which names the server may be called: a page of somebody else's must not reach it through a browser.

A name server may say that evil.example is 127.0.0.1 after a browser has loaded a page from there (DNS rebinding); the
browser then takes the guide for a part of that page. But it still calls it evil.example.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from crawlguide.core.errors import Forbidden
from crawlguide.gateway.http import problem_response

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Receive, Scope, Send

ANY = "*"
FREE = ("/healthz", "/readyz")  # say nothing, and are asked by machines


class HostHeaderCheck:
    """Passes on what calls this machine by its own names, or by one that the operator allows."""

    def __init__(self, app: ASGIApp, allowed: Collection[str]) -> None:
        self._app = app
        self._allowed = frozenset(name.lower().rstrip(".") for name in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or scope["path"] in FREE:
            await self._app(scope, receive, send)
            return
        strange = [host for host in Headers(scope=scope).getlist("host") if not self.permits(host)]
        if not strange:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await problem_response(_refusal(strange[0]))(scope, receive, send)

    def permits(self, host: str) -> bool:
        """Whoever says no name at all is no browser."""
        name = _without_port(host).lower().rstrip(".")
        return not name or ANY in self._allowed or name in self._allowed or _is_this_machine(name)


def _refusal(host: str) -> Forbidden:
    words = f"host: expected a name of this machine, or one of server.allowed_hosts, got {host[:100]!r}"
    return Forbidden(words, field="host")


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _is_this_machine(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
