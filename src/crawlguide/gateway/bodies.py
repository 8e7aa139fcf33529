"""Bodies as they come in: never more than the limit, not for ever, not slower than a trickle, within one budget."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from crawlguide.core.errors import MalformedRequest, TooLarge, UnavailableError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from crawlguide.gateway.load import Load

WITHIN_S = 30.0
FIRST_WITHIN_S = 10.0
SLOWEST_BYTES_PER_S = 1_024
IS_WHOLE = "body_is_whole"  # in the state of a scope: all of it has come, so nobody waits for it


class BodyLimits:
    """Passes on every request; what it does not accept of a body is raised where the body is read."""

    def __init__(self, app: ASGIApp, load: Load, most_bytes: int) -> None:
        self._app, self._load, self._most = app, load, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        declared = declared_bytes(scope["headers"]) if scope["type"] == "http" else 0
        if declared == 0:
            await self._app(scope, receive, send)
            return
        body = Body(scope, receive, self._load, self._most)
        try:
            await self._app(scope, body.receive, send)
        finally:
            body.free()


def declared_bytes(headers: list[tuple[bytes, bytes]]) -> int | None:
    """How long the body is said to be; None where nobody knows before its end. The parser has seen to what is legal."""
    for name, value in headers:
        if name == b"content-length":
            return int(value)
        if name == b"transfer-encoding":
            return None
    return 0


class Body:
    """One body, received piece by piece."""

    def __init__(self, scope: Scope, receive: Receive, load: Load, most_bytes: int) -> None:
        self._state, self._declared = scope.setdefault("state", {}), declared_bytes(scope["headers"])
        self._receive, self._load, self._most = receive, load, most_bytes
        self._size = 0
        self._whole = False
        self._began = asyncio.get_running_loop().time()

    async def receive(self) -> Message:
        if self._whole:
            return await self._receive()
        if self._declared is not None and self._declared > self._most:
            raise TooLarge(f"body: expected at most {self._most} bytes, got {self._declared}")
        message = await (self._receive() if IS_WHOLE in self._state else self._received_in_time())
        self._take(len(message.get("body", b"")))
        self._whole = not message.get("more_body", False)
        return message

    async def _received_in_time(self) -> Message:
        try:
            async with asyncio.timeout_at(self._deadline()):
                return await self._receive()
        except TimeoutError:
            words = f"body: expected it within {WITHIN_S:.0f} s, and {SLOWEST_BYTES_PER_S} bytes a second at least"
            raise MalformedRequest(words) from None

    def free(self) -> None:
        self._load.bodies.free(self._size)
        self._size = 0

    def _deadline(self) -> float:
        return self._began + min(WITHIN_S, FIRST_WITHIN_S + self._size / SLOWEST_BYTES_PER_S)

    def _take(self, more: int) -> None:
        if self._size + more > self._most:
            raise TooLarge(f"body: expected at most {self._most} bytes, got more")
        try:
            self._load.bodies.grow(self._size, more)
        except UnavailableError as problem:
            self._load.refused(problem)
            raise
        self._size += more
