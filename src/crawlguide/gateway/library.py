"""The guide as a library: `with Guide.open(":memory:") as guide:` in a script, no server."""

from __future__ import annotations

import asyncio
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import msgspec

from crawlguide.core import messages
from crawlguide.core.clock import SystemClock
from crawlguide.core.config import Config
from crawlguide.core.definition import Definition, RulesEdit
from crawlguide.core.errors import ConfigError, MalformedRequest
from crawlguide.core.messages import Ack, Advice, AskMessage, ReleaseMessage, ReportMessage, SeedsMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway import lookups, wire
from crawlguide.guide.crawl import composition, transfer
from crawlguide.guide.local import DEFAULT_TENANT, LocalGuide

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Iterator, Mapping, Sequence
    from types import TracebackType

    from crawlguide.core.clock import Clock

Result = TypeVar("Result")
MEMORY = ":memory:"


def open_guide(path: str | Path, config: Config, clock: Clock | None = None, seed: int = 0) -> LocalGuide:
    """The composition root: a guide over the store that lives at `path`."""
    try:
        composition.compile_all()
        composition.filters(config.guide.filters, Definition())  # what cannot work is said before anything is opened
        composition.check_default(config)
    except MalformedRequest as wrong:
        raise ConfigError(wrong.message) from None
    if str(path) == MEMORY:
        forgetful = import_module("crawlguide.store.memory").build(config.store)
        return LocalGuide(forgetful, config, clock or SystemClock(), seed)
    store = import_module("crawlguide.store.embedded").build(config.store, Path(path))
    return LocalGuide(store, config, clock or SystemClock(store.latest), seed)


class AsyncGuide:
    """A guide in an asyncio program. A dictionary in gives a dictionary out, a message gives a message."""

    def __init__(self, guide: LocalGuide) -> None:
        self._guide = guide

    @classmethod
    def open(
        cls, path: str | Path = MEMORY, *, clock: Clock | None = None, seed: int = 0, config: Config | None = None
    ) -> Self:
        return cls(open_guide(path, config or Config(), clock, seed))

    async def ask(self, message: Mapping[str, Any] | AskMessage) -> dict[str, Any] | Advice:
        """What should be fetched next?"""
        advice = await self._guide.ask(wire.convert(message, AskMessage))
        return advice if isinstance(message, AskMessage) else plain(advice)

    async def tell(self, message: Mapping[str, Any] | ReportMessage) -> dict[str, Any] | Ack:
        """What was fetched, and what was found there."""
        ack = await self._guide.tell(wire.convert(message, ReportMessage))
        return ack if isinstance(message, ReportMessage) else plain(ack)

    async def define(self, crawl_id: str, definition: Mapping[str, Any] | Definition) -> bool:
        """Create a crawl or replace its definition; True if it is new."""
        return await self._guide.define(_crawl(crawl_id), wire.convert(definition, Definition))

    async def seed(self, crawl_id: str, urls: Sequence[str | Mapping[str, Any]]) -> int:
        """Add seeds; returns how many were new."""
        return await self._guide.seed(_crawl(crawl_id), wire.convert({"urls": urls}, SeedsMessage))

    async def pause(self, crawl_id: str) -> None:
        """Give nothing out until resumed."""
        await self._guide.pause(_crawl(crawl_id), paused=True)

    async def resume(self, crawl_id: str) -> None:
        await self._guide.pause(_crawl(crawl_id), paused=False)

    async def patch(self, crawl_id: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Change parts of a definition; null brings one back to its default. Returns the crawl as it is now."""
        crawl = _crawl(crawl_id)
        await lookups.patch(self._guide, crawl, wire.convert(changes, dict))
        return plain(await lookups.crawl(self._guide, crawl))

    async def delete(self, crawl_id: str) -> None:
        """Forget a crawl and all it holds."""
        await self._guide.delete(_crawl(crawl_id))

    async def release(self, crawl_id: str, crawler_id: str) -> int:
        """Everything that a crawler holds goes back; returns how many URLs that were."""
        message = wire.convert({"crawler_id": crawler_id}, ReleaseMessage)
        return await self._guide.release(_crawl(crawl_id), message.crawler_id)

    async def rules(self, crawl_id: str) -> dict[str, Any]:
        """What is banned and weighted."""
        return plain(await self._guide.rules(_crawl(crawl_id)))

    async def edit_rules(self, crawl_id: str, edit: Mapping[str, Any] | RulesEdit) -> dict[str, Any]:
        """Ban, unban, set priorities; returns all rules that hold from now on."""
        return plain(await self._guide.edit_rules(_crawl(crawl_id), wire.convert(edit, RulesEdit)))

    async def stats(self, crawl_id: str | None = None) -> dict[str, Any]:
        return plain(await self._guide.stats(DEFAULT_TENANT, crawl_id))

    async def explain(self, crawl_id: str, url: str) -> dict[str, Any]:
        """Why does this URL stand where it stands?"""
        return plain(await lookups.explained(self._guide, _crawl(crawl_id), url))

    async def urls(
        self, crawl_id: str, state: str | None = None, host: str | None = None
    ) -> AsyncGenerator[dict[str, Any], None]:
        """All URLs of a crawl, or those in a state (queued, leased, done, dropped), or of a host."""
        cursor = None
        while True:
            page = await lookups.page(self._guide, _crawl(crawl_id), lookups.Selection(state, host, cursor=cursor))
            for url in page.urls:
                yield plain(url)
            if (cursor := page.cursor) is None:
                return

    async def export(self, crawl_id: str) -> AsyncGenerator[bytes, None]:
        """The lines of an export without their ends."""
        async for lines in transfer.exported(self._guide, _crawl(crawl_id)):
            for line in lines.split(b"\n")[:-1]:
                yield line

    async def close(self) -> None:
        await self._guide.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Guide:
    """A guide for scripts: the methods of `AsyncGuide`, each returning when it is done."""

    def __init__(self, guide: AsyncGuide) -> None:
        self._guide = guide
        self._loop = asyncio.new_event_loop()

    @classmethod
    def open(
        cls, path: str | Path = MEMORY, *, clock: Clock | None = None, seed: int = 0, config: Config | None = None
    ) -> Self:
        return cls(AsyncGuide.open(path, clock=clock, seed=seed, config=config))

    @overload
    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]: ...
    @overload
    def ask(self, message: AskMessage) -> Advice: ...
    def ask(self, message: Mapping[str, Any] | AskMessage) -> dict[str, Any] | Advice:
        return self._run(self._guide.ask(message))

    @overload
    def tell(self, message: Mapping[str, Any]) -> dict[str, Any]: ...
    @overload
    def tell(self, message: ReportMessage) -> Ack: ...
    def tell(self, message: Mapping[str, Any] | ReportMessage) -> dict[str, Any] | Ack:
        return self._run(self._guide.tell(message))

    def define(self, crawl_id: str, definition: Mapping[str, Any] | Definition) -> bool:
        return self._run(self._guide.define(crawl_id, definition))

    def seed(self, crawl_id: str, urls: Sequence[str | Mapping[str, Any]]) -> int:
        return self._run(self._guide.seed(crawl_id, urls))

    def pause(self, crawl_id: str) -> None:
        self._run(self._guide.pause(crawl_id))

    def resume(self, crawl_id: str) -> None:
        self._run(self._guide.resume(crawl_id))

    def patch(self, crawl_id: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        return self._run(self._guide.patch(crawl_id, changes))

    def delete(self, crawl_id: str) -> None:
        self._run(self._guide.delete(crawl_id))

    def release(self, crawl_id: str, crawler_id: str) -> int:
        return self._run(self._guide.release(crawl_id, crawler_id))

    def rules(self, crawl_id: str) -> dict[str, Any]:
        return self._run(self._guide.rules(crawl_id))

    def edit_rules(self, crawl_id: str, edit: Mapping[str, Any] | RulesEdit) -> dict[str, Any]:
        return self._run(self._guide.edit_rules(crawl_id, edit))

    def stats(self, crawl_id: str | None = None) -> dict[str, Any]:
        return self._run(self._guide.stats(crawl_id))

    def explain(self, crawl_id: str, url: str) -> dict[str, Any]:
        return self._run(self._guide.explain(crawl_id, url))

    def urls(self, crawl_id: str, state: str | None = None, host: str | None = None) -> Iterator[dict[str, Any]]:
        return self._each(self._guide.urls(crawl_id, state, host))

    def export(self, crawl_id: str) -> Iterator[bytes]:
        return self._each(self._guide.export(crawl_id))

    def close(self) -> None:
        if not self._loop.is_closed():
            self._run(self._guide.close())
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _each(self, items: AsyncGenerator[Result, None]) -> Iterator[Result]:
        try:
            while (item := self._run(_next(items))) is not None:
                yield item
        finally:
            if not self._loop.is_closed():
                self._run(items.aclose())

    def _run(self, step: Coroutine[Any, Any, Result]) -> Result:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            if not self._loop.is_closed():
                return self._loop.run_until_complete(step)
            step.close()
            raise RuntimeError("this guide is closed; open another one") from None
        step.close()
        raise RuntimeError("Guide is for scripts; inside an asyncio program use AsyncGuide and await its methods")


async def _next(items: AsyncGenerator[Result, None]) -> Result | None:
    return await anext(items, None)


def plain(message: Any) -> dict[str, Any]:
    """A message as dictionaries and lists, as its JSON would read."""
    result: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(message))
    return result


def _crawl(crawl_id: str) -> Crawl:
    return Crawl(DEFAULT_TENANT, messages.crawl_id(crawl_id))
