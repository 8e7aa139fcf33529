"""crawlee's request queue over any of its storages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crawlee import service_locator
from crawlee.configuration import Configuration
from crawlee.storages import RequestQueue


@dataclass(frozen=True)
class Queue:
    """Its next is fetch and mark as handled, one by one: the queue has neither in batches."""

    queue: Any
    closing: Callable[[], Awaitable[None]] | None

    async def add(self, batch: Sequence[str]) -> None:
        await self.queue.add_requests(batch)

    async def next(self, most: int) -> list[str]:
        taken: list[str] = []
        while len(taken) < most and (request := await self.queue.fetch_next_request()) is not None:
            await self.queue.mark_request_as_handled(request)
            taken.append(request.url)
        return taken

    async def close(self) -> None:
        if self.closing is not None:
            await self.closing()


async def opened(storage: Any, folder: Path, closing: Callable[[], Awaitable[None]] | None = None) -> Queue:
    configuration = Configuration(storage_dir=str(folder))
    # Parts of the queue ask the locator, which would otherwise point them to a folder below the working one.
    service_locator.set_configuration(configuration)
    queue = await RequestQueue.open(name="peer", configuration=configuration, storage_client=storage)
    return Queue(queue, closing)
