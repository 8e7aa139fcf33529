"""A guide that runs elsewhere: `Client("http://127.0.0.1:8080")` in the place of `Guide.open(":memory:")`.

Every call may be tried again after a broken connection, "unavailable" or "rate limited": an ask or a report without an
id is given one first, and whatever else is done twice leaves things as if it had been done once.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import httpx

from crawlguide.gateway.client import calls
from crawlguide.gateway.client import transport as http
from crawlguide.gateway.client.transport import DEADLINE_S, PASSING, RETRIES, TIMEOUT_S, Patience, Tries

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
    from types import TracebackType

    from crawlguide.core.definition import Definition, RulesEdit
    from crawlguide.core.messages import Ack, Advice, AskMessage, ReportMessage

Result = TypeVar("Result")


class Client:
    """A guide over HTTP, for scripts and threads: the methods of `Guide`, and some to look in.

    A call is tried again up to `retries` times, all within `deadline_s`; a try waits `timeout_s` for its answer.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
        deadline_s: float = DEADLINE_S,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._patience = Patience(timeout_s, retries, deadline_s)
        self._http = httpx.Client(**http.options(url, headers))
        self._server = http.shown(self._http.base_url)

    @overload
    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]: ...
    @overload
    def ask(self, message: AskMessage) -> Advice: ...
    def ask(self, message: Mapping[str, Any] | AskMessage) -> dict[str, Any] | Advice:
        """What should be fetched next? A dictionary in gives a dictionary out, a message gives a message."""
        return self._done(calls.ask(message))

    @overload
    def tell(self, message: Mapping[str, Any]) -> dict[str, Any]: ...
    @overload
    def tell(self, message: ReportMessage) -> Ack: ...
    def tell(self, message: Mapping[str, Any] | ReportMessage) -> dict[str, Any] | Ack:
        """What was fetched, and what was found there."""
        return self._done(calls.tell(message))

    def define(self, crawl_id: str, definition: Mapping[str, Any] | Definition) -> bool:
        """Create a crawl or replace its definition; True if it is new."""
        return self._done(calls.define(crawl_id, definition))

    def patch(self, crawl_id: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Change parts of a definition; null brings one back to its default. Returns the crawl as it is now."""
        return self._done(calls.patch(crawl_id, changes))

    def release(self, crawl_id: str, crawler_id: str) -> int:
        """Everything that a crawler holds goes back; returns how many URLs that were."""
        return self._done(calls.release(crawl_id, crawler_id))

    def rules(self, crawl_id: str) -> dict[str, Any]:
        """What is banned and weighted."""
        return self._done(calls.rules(crawl_id))

    def edit_rules(self, crawl_id: str, edit: Mapping[str, Any] | RulesEdit) -> dict[str, Any]:
        """Ban, unban, set priorities; returns all rules that hold from now on."""
        return self._done(calls.edit_rules(crawl_id, edit))

    def delete(self, crawl_id: str) -> None:
        """Forget a crawl and all it holds."""
        self._done(calls.delete(crawl_id))

    def seed(self, crawl_id: str, urls: Sequence[str | Mapping[str, Any]]) -> int:
        """Add seeds; returns how many were new."""
        return self._done(calls.seed(crawl_id, urls))

    def pause(self, crawl_id: str) -> None:
        """Give nothing out until resumed."""
        self._done(calls.pause(crawl_id, paused=True))

    def resume(self, crawl_id: str) -> None:
        self._done(calls.pause(crawl_id, paused=False))

    def stats(self, crawl_id: str | None = None) -> dict[str, Any]:
        return self._done(calls.stats(crawl_id))

    def explain(self, crawl_id: str, url: str) -> dict[str, Any]:
        """Why does this URL stand where it stands?"""
        return self._done(calls.explain(crawl_id, url))

    def urls(self, crawl_id: str, state: str | None = None, host: str | None = None) -> Iterator[dict[str, Any]]:
        """All URLs of a crawl, or those in a state (queued, leased, done, dropped), or of a host."""
        selection, cursor = {"crawl_id": crawl_id, "state": state, "host": host}, None
        while True:
            page = self._done(calls.urls(selection, cursor))
            yield from page.urls
            if (cursor := page.cursor) is None:
                return

    def export(self, crawl_id: str) -> Iterator[bytes]:
        """The lines of an export without their ends. Once they flow, a connection that breaks is an error."""
        call, lines = calls.export(crawl_id), calls.Lines()
        with closing(self._tried(lambda tries: self._opened(call, tries))) as answer, http.heard(self._server):
            for piece in answer.iter_bytes():
                yield from lines.of(piece)
            yield from lines.rest()

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _done(self, call: calls.Call[Result]) -> Result:
        return self._tried(lambda tries: self._answered(call, tries))

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

    def _answered(self, call: calls.Call[Result], tries: Tries) -> Result:
        with self._http.stream(**http.sent(call, tries)) as answer:
            body = _read(answer, tries)
        return call.read(http.reply(self._server, answer, body, tries))

    def _opened(self, call: calls.Call[None], tries: Tries) -> httpx.Response:
        """An answer whose lines are still to come."""
        answer = self._http.send(self._http.build_request(**http.sent(call, tries)), stream=True)
        if not http.are_lines(answer):
            with closing(answer):
                call.read(http.reply(self._server, answer, _read(answer, tries), tries))
        return answer


class AsyncClient:
    """A guide over HTTP in an asyncio program: the methods of `Client`, each to be awaited."""

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
        deadline_s: float = DEADLINE_S,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._patience = Patience(timeout_s, retries, deadline_s)
        self._http = httpx.AsyncClient(**http.options(url, headers))
        self._server = http.shown(self._http.base_url)

    @overload
    async def ask(self, message: Mapping[str, Any]) -> dict[str, Any]: ...
    @overload
    async def ask(self, message: AskMessage) -> Advice: ...
    async def ask(self, message: Mapping[str, Any] | AskMessage) -> dict[str, Any] | Advice:
        return await self._done(calls.ask(message))

    @overload
    async def tell(self, message: Mapping[str, Any]) -> dict[str, Any]: ...
    @overload
    async def tell(self, message: ReportMessage) -> Ack: ...
    async def tell(self, message: Mapping[str, Any] | ReportMessage) -> dict[str, Any] | Ack:
        return await self._done(calls.tell(message))

    async def define(self, crawl_id: str, definition: Mapping[str, Any] | Definition) -> bool:
        return await self._done(calls.define(crawl_id, definition))

    async def patch(self, crawl_id: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        return await self._done(calls.patch(crawl_id, changes))

    async def release(self, crawl_id: str, crawler_id: str) -> int:
        return await self._done(calls.release(crawl_id, crawler_id))

    async def rules(self, crawl_id: str) -> dict[str, Any]:
        return await self._done(calls.rules(crawl_id))

    async def edit_rules(self, crawl_id: str, edit: Mapping[str, Any] | RulesEdit) -> dict[str, Any]:
        return await self._done(calls.edit_rules(crawl_id, edit))

    async def delete(self, crawl_id: str) -> None:
        await self._done(calls.delete(crawl_id))

    async def seed(self, crawl_id: str, urls: Sequence[str | Mapping[str, Any]]) -> int:
        return await self._done(calls.seed(crawl_id, urls))

    async def pause(self, crawl_id: str) -> None:
        await self._done(calls.pause(crawl_id, paused=True))

    async def resume(self, crawl_id: str) -> None:
        await self._done(calls.pause(crawl_id, paused=False))

    async def stats(self, crawl_id: str | None = None) -> dict[str, Any]:
        return await self._done(calls.stats(crawl_id))

    async def explain(self, crawl_id: str, url: str) -> dict[str, Any]:
        return await self._done(calls.explain(crawl_id, url))

    async def urls(
        self, crawl_id: str, state: str | None = None, host: str | None = None
    ) -> AsyncGenerator[dict[str, Any], None]:
        selection, cursor = {"crawl_id": crawl_id, "state": state, "host": host}, None
        while True:
            page = await self._done(calls.urls(selection, cursor))
            for url in page.urls:
                yield url
            if (cursor := page.cursor) is None:
                return

    async def export(self, crawl_id: str) -> AsyncGenerator[bytes, None]:
        call, lines = calls.export(crawl_id), calls.Lines()
        async with aclosing(await self._tried(lambda tries: self._opened(call, tries))) as answer:
            with http.heard(self._server):
                async for piece in answer.aiter_bytes():
                    for line in lines.of(piece):
                        yield line
            for line in lines.rest():
                yield line

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _done(self, call: calls.Call[Result]) -> Result:
        return await self._tried(lambda tries: self._answered(call, tries))

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

    async def _answered(self, call: calls.Call[Result], tries: Tries) -> Result:
        answer = await self._http.request(**http.sent(call, tries))
        return call.read(http.reply(self._server, answer, answer.content, tries))

    async def _opened(self, call: calls.Call[None], tries: Tries) -> httpx.Response:
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
