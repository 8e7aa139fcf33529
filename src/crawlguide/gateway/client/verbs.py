"""What can be asked of a guide, once for scripts and once for asyncio programs: the methods of all four faces.

`Client` and `AsyncClient` carry a call over HTTP, `Guide` and `AsyncGuide` to a guide in this process. Each of them
says only how: `_done` for a call with one answer, `_pieces` for one whose answer is a stream of lines.
"""

from __future__ import annotations

from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, overload

from crawlguide.gateway.client import calls

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterator, Mapping, Sequence
    from types import TracebackType

    from crawlguide.core.definition import Definition, RulesEdit
    from crawlguide.core.messages import Ack, Advice, AskMessage, ReportMessage
    from crawlguide.gateway.client.calls import Call

Result = TypeVar("Result")


class Verbs(Protocol):
    """Every method returns when it is done. A dictionary in gives a dictionary out, a message gives a message."""

    def _done(self, call: Call[Result]) -> Result: ...
    def _pieces(self, call: Call[None]) -> Generator[bytes, None, None]: ...
    def close(self) -> None: ...

    @overload
    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]: ...
    @overload
    def ask(self, message: AskMessage) -> Advice: ...
    def ask(self, message: Mapping[str, Any] | AskMessage) -> dict[str, Any] | Advice:
        """What should be fetched next?"""
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

    def crawl(self, crawl_id: str) -> dict[str, Any]:
        """A crawl's definition and the state it is in."""
        return self._done(calls.crawl(crawl_id))

    def patch(self, crawl_id: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Change parts of a definition; null brings one back to its default. Returns the crawl as it is now."""
        return self._done(calls.patch(crawl_id, changes))

    def delete(self, crawl_id: str) -> None:
        """Forget a crawl and all it holds."""
        self._done(calls.delete(crawl_id))

    def seed(self, crawl_id: str, urls: Sequence[str | Mapping[str, Any]]) -> int:
        """Add seeds; returns how many were new."""
        return self._done(calls.seed(crawl_id, urls))

    def pause(self, crawl_id: str) -> None:
        """Give nothing out until resumed."""
        self._done(calls.pause(crawl_id))

    def resume(self, crawl_id: str) -> None:
        """Give URLs out again."""
        self._done(calls.resume(crawl_id))

    def release(self, crawl_id: str, crawler_id: str) -> int:
        """Return everything that a crawler holds; returns how many URLs that were."""
        return self._done(calls.release(crawl_id, crawler_id))

    def rules(self, crawl_id: str) -> dict[str, Any]:
        """What is banned and weighted."""
        return self._done(calls.rules(crawl_id))

    def edit_rules(self, crawl_id: str, edit: Mapping[str, Any] | RulesEdit) -> dict[str, Any]:
        """Ban, unban, set priorities; returns all rules that hold from now on."""
        return self._done(calls.edit_rules(crawl_id, edit))

    def stats(self, crawl_id: str | None = None) -> dict[str, Any]:
        """Numbers of all crawls, or of one."""
        return self._done(calls.stats(crawl_id))

    def crawls(self) -> Iterator[dict[str, Any]]:
        """All crawls with their state and definition, by name."""
        cursor = None
        while True:
            page = self._done(calls.crawls(cursor))
            yield from page.crawls
            if (cursor := page.cursor) is None:
                return

    def explain(self, crawl_id: str, url: str) -> dict[str, Any]:
        """Why does this URL stand where it stands?"""
        return self._done(calls.explain(crawl_id, url))

    def urls(self, crawl_id: str, state: str | None = None, host: str | None = None) -> Iterator[dict[str, Any]]:
        """All URLs of a crawl, or those in a state (queued, leased, done, dropped), or of a host."""
        cursor = None
        while True:
            page = self._done(calls.urls(crawl_id, state, host, cursor))
            yield from page.urls
            if (cursor := page.cursor) is None:
                return

    def export(self, crawl_id: str) -> Iterator[bytes]:
        """The lines of an export without their ends. Once they flow, a connection that breaks is an error."""
        lines = calls.Lines()
        with closing(self._pieces(calls.export(crawl_id))) as pieces:
            for piece in pieces:
                yield from lines.of(piece)
        yield from lines.rest()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncVerbs(Protocol):
    """The methods of `Verbs`, each to be awaited."""

    async def _done(self, call: Call[Result]) -> Result: ...
    def _pieces(self, call: Call[None]) -> AsyncGenerator[bytes, None]: ...
    async def close(self) -> None: ...

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

    async def crawl(self, crawl_id: str) -> dict[str, Any]:
        return await self._done(calls.crawl(crawl_id))

    async def patch(self, crawl_id: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        return await self._done(calls.patch(crawl_id, changes))

    async def delete(self, crawl_id: str) -> None:
        await self._done(calls.delete(crawl_id))

    async def seed(self, crawl_id: str, urls: Sequence[str | Mapping[str, Any]]) -> int:
        return await self._done(calls.seed(crawl_id, urls))

    async def pause(self, crawl_id: str) -> None:
        await self._done(calls.pause(crawl_id))

    async def resume(self, crawl_id: str) -> None:
        await self._done(calls.resume(crawl_id))

    async def release(self, crawl_id: str, crawler_id: str) -> int:
        return await self._done(calls.release(crawl_id, crawler_id))

    async def rules(self, crawl_id: str) -> dict[str, Any]:
        return await self._done(calls.rules(crawl_id))

    async def edit_rules(self, crawl_id: str, edit: Mapping[str, Any] | RulesEdit) -> dict[str, Any]:
        return await self._done(calls.edit_rules(crawl_id, edit))

    async def stats(self, crawl_id: str | None = None) -> dict[str, Any]:
        return await self._done(calls.stats(crawl_id))

    async def crawls(self) -> AsyncGenerator[dict[str, Any], None]:
        cursor = None
        while True:
            page = await self._done(calls.crawls(cursor))
            for crawl in page.crawls:
                yield crawl
            if (cursor := page.cursor) is None:
                return

    async def explain(self, crawl_id: str, url: str) -> dict[str, Any]:
        return await self._done(calls.explain(crawl_id, url))

    async def urls(
        self, crawl_id: str, state: str | None = None, host: str | None = None
    ) -> AsyncGenerator[dict[str, Any], None]:
        cursor = None
        while True:
            page = await self._done(calls.urls(crawl_id, state, host, cursor))
            for url in page.urls:
                yield url
            if (cursor := page.cursor) is None:
                return

    async def export(self, crawl_id: str) -> AsyncGenerator[bytes, None]:
        lines = calls.Lines()
        async with aclosing(self._pieces(calls.export(crawl_id))) as pieces:
            async for piece in pieces:
                for line in lines.of(piece):
                    yield line
        for line in lines.rest():
            yield line

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
