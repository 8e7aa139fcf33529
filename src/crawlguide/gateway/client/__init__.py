"""A guide that runs elsewhere: `Client("http://127.0.0.1:8080")` in the place of `Guide.open(":memory:")`.

Every call may be tried again after a broken connection, "unavailable" or "rate limited": an ask or a report without an
id is given one first, and whatever else is done twice leaves things as if it had been done once.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, TypeVar, Unpack

import httpx

from crawlguide.gateway.client import transport as http
from crawlguide.gateway.client.calls import keyed
from crawlguide.gateway.client.transport import DEADLINE_S, PASSING, RETRIES, TIMEOUT_S, Patience, Shown, Tries
from crawlguide.gateway.client.verbs import AsyncVerbs, Verbs

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping

    from crawlguide.gateway.client.calls import Call

Result = TypeVar("Result")


class Client(Verbs):
    """A guide over HTTP, for scripts and threads: the methods of `Guide`.

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
        self.notice = http.Notice()
        self._http = httpx.Client(**http.options(url, headers, shown), event_hooks={"response": [self.notice.note]})
        self._server = http.without_password(self._http.base_url)

    def close(self) -> None:
        self._http.close()

    def _done(self, call: Call[Result]) -> Result:
        same = keyed(call)
        return self._tried(lambda tries: self._answered(same, tries))

    def _pieces(self, call: Call[None]) -> Generator[bytes, None, None]:
        with closing(self._tried(lambda tries: self._opened(call, tries))) as answer, http.heard(self._server):
            yield from answer.iter_bytes()

    def _tried(self, step: Callable[[Tries], Result]) -> Result:
        tries = Tries(self._patience)
        while True:
            http.check_open(self._http.is_closed)
            try:
                with http.heard(self._server):
                    return step(tries)
            except PASSING as problem:
                wait_s = tries.wait_s(problem)
            time.sleep(wait_s)

    def _answered(self, call: Call[Result], tries: Tries) -> Result:
        with self._http.stream(**http.sent(call, tries)) as answer:
            body = _read(answer, tries)
        return call.read(http.reply(self._server, answer, body, tries))

    def _opened(self, call: Call[None], tries: Tries) -> httpx.Response:
        """An answer whose lines are still to come."""
        answer = self._http.send(self._http.build_request(**http.sent(call, tries)), stream=True)
        if not http.are_lines(answer):
            with closing(answer):
                call.read(http.reply(self._server, answer, _read(answer, tries), tries))
        return answer


class AsyncClient(AsyncVerbs):
    """A guide over HTTP in an asyncio program: the methods of `Client`, each to be awaited."""

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
        self._http = httpx.AsyncClient(**http.options(url, headers, shown))
        self._server = http.without_password(self._http.base_url)

    async def close(self) -> None:
        await self._http.aclose()

    async def _done(self, call: Call[Result]) -> Result:
        same = keyed(call)
        return await self._tried(lambda tries: self._answered(same, tries))

    async def _pieces(self, call: Call[None]) -> AsyncGenerator[bytes, None]:
        async with aclosing(await self._tried(lambda tries: self._opened(call, tries))) as answer:
            with http.heard(self._server):
                async for piece in answer.aiter_bytes():
                    yield piece

    async def _tried(self, step: Callable[[Tries], Awaitable[Result]]) -> Result:
        tries = Tries(self._patience)
        while True:
            http.check_open(self._http.is_closed)
            try:
                with http.heard(self._server):
                    async with asyncio.timeout(tries.left_s):
                        return await step(tries)
            except PASSING as problem:
                wait_s = tries.wait_s(problem)
            await asyncio.sleep(wait_s)

    async def _answered(self, call: Call[Result], tries: Tries) -> Result:
        answer = await self._http.request(**http.sent(call, tries))
        return call.read(http.reply(self._server, answer, answer.content, tries))

    async def _opened(self, call: Call[None], tries: Tries) -> httpx.Response:
        answer = await self._http.send(self._http.build_request(**http.sent(call, tries)), stream=True)
        if not http.are_lines(answer):
            async with aclosing(answer):
                call.read(http.reply(self._server, answer, await answer.aread(), tries))
        return answer


def _read(answer: httpx.Response, tries: Tries) -> bytes:
    pieces = []
    for piece in answer.iter_bytes():
        tries.check()
        pieces.append(piece)
    return b"".join(pieces)
