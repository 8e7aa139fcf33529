"""What conversations of many messages share, over a WebSocket as over a stream of gRPC: a bound, a look, an end."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any, NoReturn

from crawlguide.gateway.watched_files import LOOKS_EVERY_S

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from crawlguide.gateway.access.entrance import Caller, Entrance
    from crawlguide.gateway.assigned import Holder
    from crawlguide.guide.local import LocalGuide

MOST_WORK_BYTES = 16 * 1024 * 1024  # of messages that are being worked on
LEAVING = "the server is shutting down; connect again, another may answer"


class InWork:
    """The messages of one conversation that are not answered yet. Where it is full no more is read."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._messages = self._bytes = 0

    def __len__(self) -> int:
        return self._messages

    @property
    def is_full(self) -> bool:
        return self._messages >= self._most or self._bytes >= MOST_WORK_BYTES

    def enter(self, size: int) -> None:
        self._messages += 1
        self._bytes += size

    def leave(self, size: int) -> None:
        self._messages -= 1
        self._bytes -= size


class Standing:
    """Whether somebody who was admitted may still be here. Looks only where something may have changed."""

    def __init__(self, entrance: Entrance, caller: Caller) -> None:
        self._entrance, self._caller = entrance, caller
        self._known_by, self._known_until = (-1, -1), 0.0

    def check(self) -> None:
        """Raises `Unauthenticated` for a key that was revoked, or has expired."""
        if self._known_until <= time.time() or self._known_by != self._entrance.version:
            version = self._entrance.version
            self._known_by, self._known_until = version, self._entrance.identify(self._caller).expires

    async def watch(self) -> NoReturn:
        """Look again and again, even if nothing is said. Raises `Unauthenticated`."""
        while True:
            self.check()
            await asyncio.sleep(LOOKS_EVERY_S)


async def waited(event: asyncio.Event, seconds: float) -> None:
    """Until the event, or so long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds if seconds < inf else None):
            await event.wait()


async def ended(tasks: Collection[asyncio.Task[Any]], holders: Iterable[Holder], guide: LocalGuide) -> None:
    """Let what runs come to its end, since an ask that is cut loses leases; then return what is still held."""
    if tasks:
        await asyncio.wait({*tasks})
    for holder in holders:
        await holder.give_back(guide)
