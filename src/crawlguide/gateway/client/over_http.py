"""Calls carried over HTTP by httpx: once for scripts and threads, once for asyncio programs."""

from __future__ import annotations

from contextlib import aclosing, closing
from typing import TYPE_CHECKING, TypeVar

import httpx

from crawlguide.gateway.client import transport as http

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Mapping

    from crawlguide.gateway.client.calls import Call
    from crawlguide.gateway.client.transport import Shown, Tries

Result = TypeVar("Result")


class HttpTransport:
    """One server, for scripts. What goes wrong is raised as `CrawlGuideError`."""

    def __init__(self, url: str, headers: Mapping[str, str] | None, shown: Shown) -> None:
        self.notice = http.Notice()
        self._http = httpx.Client(**http.options(url, headers, shown), event_hooks={"response": [self.notice.note]})
        self._server = http.without_password(self._http.base_url)

    @property
    def is_closed(self) -> bool:
        return self._http.is_closed

    def close(self) -> None:
        self._http.close()

    def answered(self, call: Call[Result], tries: Tries) -> Result:
        with http.heard(self._server):
            with self._http.stream(**http.sent(call, tries)) as answer:
                body = _read(answer, tries)
            return call.read(http.reply(self._server, answer, body, tries))

    def opened(self, call: Call[None], tries: Tries) -> Generator[bytes, None, None]:
        """An answer whose lines are still to come."""
        with http.heard(self._server):
            answer = self._http.send(self._http.build_request(**http.sent(call, tries)), stream=True)
            if not http.are_lines(answer):
                with closing(answer):
                    call.read(http.reply(self._server, answer, _read(answer, tries), tries))
        return self._pieces(answer)

    def _pieces(self, answer: httpx.Response) -> Generator[bytes, None, None]:
        with closing(answer), http.heard(self._server):
            yield from answer.iter_bytes()


class AsyncHttpTransport:
    """The same for asyncio programs."""

    def __init__(self, url: str, headers: Mapping[str, str] | None, shown: Shown) -> None:
        self._http = httpx.AsyncClient(**http.options(url, headers, shown))
        self.server = http.without_password(self._http.base_url)

    @property
    def is_closed(self) -> bool:
        return self._http.is_closed

    async def close(self) -> None:
        await self._http.aclose()

    async def answered(self, call: Call[Result], tries: Tries) -> Result:
        with http.heard(self.server):
            answer = await self._http.request(**http.sent(call, tries))
            return call.read(http.reply(self.server, answer, answer.content, tries))

    async def opened(self, call: Call[None], tries: Tries) -> AsyncGenerator[bytes, None]:
        with http.heard(self.server):
            answer = await self._http.send(self._http.build_request(**http.sent(call, tries)), stream=True)
            if not http.are_lines(answer):
                async with aclosing(answer):
                    call.read(http.reply(self.server, answer, await answer.aread(), tries))
        return self._pieces(answer)

    async def _pieces(self, answer: httpx.Response) -> AsyncGenerator[bytes, None]:
        async with aclosing(answer):
            with http.heard(self.server):
                async for piece in answer.aiter_bytes():
                    yield piece


def _read(answer: httpx.Response, tries: Tries) -> bytes:
    pieces = []
    for piece in answer.iter_bytes():
        tries.check()
        pieces.append(piece)
    return b"".join(pieces)
