"""The guide as a library: `with Guide.open(":memory:") as guide:` in a script, no server."""

from __future__ import annotations

import asyncio
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import msgspec

from crawlguide.core.clock import SystemClock
from crawlguide.core.config import Config
from crawlguide.core.crawls import Definition
from crawlguide.core.errors import ConfigError, MalformedRequest
from crawlguide.core.messages import Ack, Advice, AskMessage, ReportMessage, SeedsMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway import wire
from crawlguide.guide import composition
from crawlguide.guide.local import DEFAULT_TENANT, LocalGuide

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence
    from types import TracebackType

    from crawlguide.core.clock import Clock

Result = TypeVar("Result")
MEMORY = ":memory:"


def open_guide(path: str | Path, config: Config, clock: Clock | None = None, seed: int = 0) -> LocalGuide:
    """The composition root: a guide over the store that lives at `path`."""
    try:
        composition.compile_all()
        composition.filters(config.guide.filters, Definition())  # what cannot work is said before anything is opened
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

    async def stats(self, crawl_id: str | None = None) -> dict[str, Any]:
        return plain(await self._guide.stats(DEFAULT_TENANT, crawl_id))

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

    def stats(self, crawl_id: str | None = None) -> dict[str, Any]:
        return self._run(self._guide.stats(crawl_id))

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


def plain(message: Any) -> dict[str, Any]:
    """A message as dictionaries and lists, as its JSON would read."""
    result: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(message))
    return result


def _crawl(crawl_id: str) -> Crawl:
    return Crawl(DEFAULT_TENANT, wire.crawl_id(crawl_id))
