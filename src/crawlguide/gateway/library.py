"""The guide as a library: `with Guide.open(":memory:") as guide:` in a script, no server."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import msgspec

from crawlguide.core.clock import SystemClock
from crawlguide.core.config import Config
from crawlguide.core.crawls import Definition
from crawlguide.core.errors import ConfigError
from crawlguide.core.messages import Ack, Advice, AskMessage, ReportMessage, SeedsMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway import wire
from crawlguide.guide.local import DEFAULT_TENANT, LocalGuide

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from pathlib import Path
    from types import TracebackType

    from crawlguide.core.clock import Clock

Result = TypeVar("Result")
MEMORY = ":memory:"


def open_guide(path: str | Path, config: Config, clock: Clock | None = None, seed: int = 0) -> LocalGuide:
    """The composition root: a guide over the store that lives at `path`."""
    if str(path) != MEMORY:
        raise ConfigError(f"data: expected {MEMORY!r}, got {str(path)!r}: the store on disk is not built yet")
    store = import_module("crawlguide.store.memory").build(config.store)
    return LocalGuide(store, config, clock or SystemClock(), seed)


class Guide:
    """A guide for scripts: every call returns when it is done. A dictionary in gives a dictionary out.

    In an asyncio program use `AsyncGuide`, whose methods are the same but awaited.
    """

    def __init__(self, guide: LocalGuide) -> None:
        self._guide = guide
        self._loop = asyncio.new_event_loop()

    @classmethod
    def open(
        cls, path: str | Path = MEMORY, *, clock: Clock | None = None, seed: int = 0, config: Config | None = None
    ) -> Self:
        return cls(open_guide(path, config or Config(), clock, seed))

    @overload
    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]: ...
    @overload
    def ask(self, message: AskMessage) -> Advice: ...
    def ask(self, message: Mapping[str, Any] | AskMessage) -> dict[str, Any] | Advice:
        """What should be fetched next?"""
        advice = self._run(self._guide.ask(wire.convert(message, AskMessage)))
        return advice if isinstance(message, AskMessage) else plain(advice)

    @overload
    def tell(self, message: Mapping[str, Any]) -> dict[str, Any]: ...
    @overload
    def tell(self, message: ReportMessage) -> Ack: ...
    def tell(self, message: Mapping[str, Any] | ReportMessage) -> dict[str, Any] | Ack:
        """What was fetched, and what was found there."""
        ack = self._run(self._guide.tell(wire.convert(message, ReportMessage)))
        return ack if isinstance(message, ReportMessage) else plain(ack)

    def define(self, crawl_id: str, definition: Mapping[str, Any] | Definition) -> bool:
        """Create a crawl or replace its definition; True if it is new."""
        return self._run(self._guide.define(Crawl(DEFAULT_TENANT, crawl_id), wire.convert(definition, Definition)))

    def seed(self, crawl_id: str, urls: list[str | dict[str, Any]]) -> int:
        """Add seeds; returns how many were new."""
        message = wire.convert({"urls": urls}, SeedsMessage)
        return self._run(self._guide.seed(Crawl(DEFAULT_TENANT, crawl_id), message))

    def stats(self, crawl_id: str | None = None) -> dict[str, Any]:
        return plain(self._run(self._guide.stats(DEFAULT_TENANT, crawl_id)))

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
        return self._loop.run_until_complete(step)


def plain(message: Any) -> dict[str, Any]:
    """A message as dictionaries and lists, as its JSON would read."""
    result: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(message))
    return result
