"""The guide as a library: `with Guide.open(":memory:") as guide:` in a script, no server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import msgspec

from crawlguide.core.config import Config
from crawlguide.gateway import routes, wire
from crawlguide.gateway.access.credential import ANYONE
from crawlguide.gateway.client.verbs import AsyncVerbs, Verbs
from crawlguide.gateway.opening import MEMORY, open_guide

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
    from pathlib import Path

    from crawlguide.core.clock import Clock
    from crawlguide.gateway.client.calls import Call
    from crawlguide.guide.local import LocalGuide

Result = TypeVar("Result")
Message = TypeVar("Message")


class LocalVerbs(AsyncVerbs, Protocol):
    """The verbs of a guide in this process, where what an endpoint gives is a message already."""

    async def _served(self, call: Call[Any]) -> Any:
        """What the endpoint gives that a server would have called."""

    async def _done(self, call: Call[Result]) -> Result:
        found = await self._served(call)
        message, new = found if isinstance(found, tuple) else (found, False)
        return call.read(LocalAnswer(message, 201 if new else 200))

    async def _pieces(self, call: Call[None]) -> AsyncGenerator[bytes, None]:
        async for piece in await self._served(call):
            yield piece


def message_of(call: Call[Any], route: routes.Route) -> Any:
    """What a call says to an endpoint. Raises `MalformedRequest`."""
    checked = route.takes not in {None, routes.Lines}
    return wire.convert(call.message, route.takes) if checked else call.message


class AsyncGuide(LocalVerbs):
    """A guide in an asyncio program."""

    def __init__(self, guide: LocalGuide) -> None:
        self._guide = guide

    @classmethod
    def open(
        cls, path: str | Path = MEMORY, *, clock: Clock | None = None, seed: int = 0, config: Config | None = None
    ) -> Self:
        return cls(open_guide(path, config or Config(), clock, seed))

    async def close(self) -> None:
        await self._guide.close()

    async def _served(self, call: Call[Any]) -> Any:
        route = routes.BY_ENDPOINT[call.method, call.path]
        path, message = {"crawl_id": call.crawl_id}, message_of(call, route)
        return await route.serve(routes.RouteCall(self._guide, ANYONE, route.scope, path, call.query, message))


class Guide(Verbs):
    """A guide for scripts: the methods of `AsyncGuide`, each returning when it is done."""

    def __init__(self, guide: AsyncGuide) -> None:
        self._guide = guide
        self._loop = asyncio.new_event_loop()

    @classmethod
    def open(
        cls, path: str | Path = MEMORY, *, clock: Clock | None = None, seed: int = 0, config: Config | None = None
    ) -> Self:
        return cls(AsyncGuide.open(path, clock=clock, seed=seed, config=config))

    def close(self) -> None:
        if not self._loop.is_closed():
            self._run(self._guide.close())
            self._loop.close()

    def _done(self, call: Call[Result]) -> Result:
        return self._run(self._guide._done(call))

    def _pieces(self, call: Call[None]) -> Generator[bytes, None, None]:
        pieces = self._guide._pieces(call)
        try:
            while (piece := self._run(_next(pieces))) is not None:
                yield piece
        finally:
            if not self._loop.is_closed():
                self._run(pieces.aclose())

    def _run_on(self, step: Callable[[LocalGuide], Coroutine[Any, Any, Result]]) -> Result:
        """What none of the verbs does."""
        return self._run(step(self._guide._guide))

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


@dataclass(frozen=True)
class LocalAnswer:
    """The answer of a guide in this process, which is a message already."""

    found: Any
    status: int
    retried: bool = False

    def message(self, kind: type[Message]) -> Message:
        return self.found if isinstance(self.found, kind) else msgspec.json.decode(wire.encode(self.found), type=kind)
