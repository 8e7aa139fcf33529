"""Requests with an id that are being answered: the same one, come again meanwhile, waits until the first is over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from crawlguide.core.types import Crawl

Reply = TypeVar("Reply")
Request = tuple["Crawl", str, str]  # with its verb and its id
ENDS_WITHIN_S = 30.0


class UnderWay:
    """One request at a time for each id; whoever waited then finds what the first one left in the store.

    What was begun is brought to its end even if nobody waits for it any more: half a report counts for nothing, and
    would count again when it comes again.
    """

    def __init__(self) -> None:
        self._tasks: dict[Request, asyncio.Task[object]] = {}

    async def alone(self, request: Request, work: Callable[[], Awaitable[Reply]]) -> Reply:
        while request in self._tasks:
            await asyncio.wait([self._tasks[request]])
        task = asyncio.ensure_future(work())
        self._tasks[request] = task
        task.add_done_callback(lambda done: self._ended(request, done))
        return await asyncio.shield(task)

    async def end(self) -> None:
        """Let all that was begun come to its end."""
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=ENDS_WITHIN_S)

    def _ended(self, request: Request, task: asyncio.Future[Reply]) -> None:
        del self._tasks[request]
        if not task.cancelled():
            task.exception()  # whoever waits is told; if nobody does, it is no news
