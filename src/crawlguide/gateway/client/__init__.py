"""A guide that runs elsewhere: `Client("http://127.0.0.1:8080")` in the place of `Guide.open(":memory:")`.

Every call may be tried again after a broken connection, "unavailable" or "rate limited": an ask or a report without an
id is given one first, and whatever else is done twice leaves things as if it had been done once.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, closing
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from crawlguide.core.errors import ConfigError, UnavailableError
from crawlguide.core.extras import installing
from crawlguide.gateway.client.calls import keyed
from crawlguide.gateway.client.over_http import AsyncHttpTransport, HttpTransport
from crawlguide.gateway.client.patience import DEADLINE_S, RETRIES, RETRYABLE, TIMEOUT_S, Patience, Tries
from crawlguide.gateway.client.transport import Shown, check_open
from crawlguide.gateway.client.verbs import AsyncVerbs, Verbs

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping

    from crawlguide.gateway.client.calls import Call
    from crawlguide.gateway.client.transport import AsyncTransport, Transport

Result = TypeVar("Result")


class Client(Verbs):
    """A guide over HTTP or gRPC (`grpc://127.0.0.1:8081`), for scripts and threads: the methods of `Guide`.

    A call is tried again up to `retries` times, all within `deadline_s`; a try waits `timeout_s` for its answer.
    `token`, `ca`, `certificate` and `certificate_key` are shown to the server, or trusted in place of the usual
    authorities; without them the environment and `~/.config/crawlguide/token` are looked at.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
        deadline_s: float = DEADLINE_S,
        headers: Mapping[str, str] | None = None,
        **shown: Unpack[Shown],
    ) -> None:
        self._patience = Patience(timeout_s, retries, deadline_s)
        self._transport: Transport = _kind(url, HttpTransport, "GrpcTransport")(url, headers, shown)
        self.notice = self._transport.notice

    def close(self) -> None:
        self._transport.close()

    def _done(self, call: Call[Result]) -> Result:
        same = keyed(call)
        return self._tried(lambda tries: self._transport.answered(same, tries))

    def _pieces(self, call: Call[None]) -> Generator[bytes, None, None]:
        with closing(self._tried(lambda tries: self._transport.opened(call, tries))) as pieces:
            yield from pieces

    def _tried(self, step: Callable[[Tries], Result]) -> Result:
        tries = Tries(self._patience)
        while True:
            check_open(self._transport.is_closed)
            try:
                return step(tries)
            except RETRYABLE as problem:
                wait_s = tries.wait_s(problem)
            time.sleep(wait_s)


class AsyncClient(AsyncVerbs):
    """A guide over HTTP or gRPC in an asyncio program: the methods of `Client`, each to be awaited."""

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
        deadline_s: float = DEADLINE_S,
        headers: Mapping[str, str] | None = None,
        **shown: Unpack[Shown],
    ) -> None:
        self._patience = Patience(timeout_s, retries, deadline_s)
        self._transport: AsyncTransport = _kind(url, AsyncHttpTransport, "AsyncGrpcTransport")(url, headers, shown)

    async def close(self) -> None:
        await self._transport.close()

    async def _done(self, call: Call[Result]) -> Result:
        same = keyed(call)
        return await self._tried(lambda tries: self._transport.answered(same, tries))

    async def _pieces(self, call: Call[None]) -> AsyncGenerator[bytes, None]:
        async with aclosing(await self._tried(lambda tries: self._transport.opened(call, tries))) as pieces:
            async for piece in pieces:
                yield piece

    async def _tried(self, step: Callable[[Tries], Awaitable[Result]]) -> Result:
        tries = Tries(self._patience)
        while True:
            check_open(self._transport.is_closed)
            try:
                return await self._in_time(step, tries)
            except RETRYABLE as problem:
                wait_s = tries.wait_s(problem)
            await asyncio.sleep(wait_s)

    async def _in_time(self, step: Callable[[Tries], Awaitable[Result]], tries: Tries) -> Result:
        try:
            async with asyncio.timeout(tries.left_s):
                return await step(tries)
        except TimeoutError:
            raise UnavailableError(f"{self._transport.server} does not answer in time") from None


def _kind(url: str, over_http: Any, over_grpc: str) -> Any:
    """What carries calls to an address. Whoever speaks HTTP needs no gRPC."""
    if not url.startswith(("grpc://", "grpcs://")):
        return over_http
    try:
        return getattr(import_module("crawlguide.gateway.client.over_grpc"), over_grpc)
    except ModuleNotFoundError as missing:
        raise ConfigError(f"url: gRPC needs {missing.name}, which is not installed: {installing('grpc')}") from None
