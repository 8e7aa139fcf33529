"""Messages that come in one to a call: a few are read at once, none for ever, so that unfinished ones fill no memory.

gRPC hands over whole messages alone, and nothing tells how much of one is there. So whoever reads one has to have room
for the largest, and is somebody we know, or one of very few.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import grpc.aio

from crawlguide.core.errors import MalformedRequest, UnavailableError
from crawlguide.gateway.access.credential import ANYONE
from crawlguide.gateway.bodies import WITHIN_S
from crawlguide.gateway.load import RETRY_AFTER_S, whose

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable
    from typing import TypeAlias

    from crawlguide.core.config import ServerOptions
    from crawlguide.gateway.access.credential import Credential
    from crawlguide.gateway.grpc.transport import Context
    from crawlguide.gateway.load import Load

    Which: TypeAlias = Callable[[Context], Awaitable[Any]]

PART_OF_BUDGET = 4  # of all bodies: as much may be reserved for messages of one door that are being read
PATIENCE_S = 0.5  # for which others wait before one that is not there yet has to go
MOST_WAITING = 1_000  # of each some 64 KiB may have come in
MOST_STRANGERS = 8


async def only_one(context: Context) -> Any:
    """The one message there is, unread. Raises `MalformedRequest`."""
    unread = await context.read()
    if unread is grpc.aio.EOF:
        await asyncio.sleep(0)  # a client that has gone looks the same, until the call is cancelled
        raise MalformedRequest("expected one message, got none")
    if await context.read() is not grpc.aio.EOF:
        raise MalformedRequest("expected one message, got more")
    return unread


async def next_one(context: Context) -> Any:
    """The next message of a stream, unread; None at its end."""
    unread = await context.read()
    return None if unread is grpc.aio.EOF else unread


class Reads:
    """All messages that one door reads now. Whole ones are there in a moment, so others wait for their turn.

    Where that takes long, one that comes in slowly goes: of whoever has the most of them, so that nobody can keep
    others from theirs.
    """

    patience_s = PATIENCE_S

    def __init__(self, load: Load, options: ServerOptions) -> None:
        self._load, self._largest = load, largest(options)
        self._room = asyncio.Semaphore(max(1, options.max_bodies_bytes // PART_OF_BUDGET // self._largest))
        self._waiting = 0
        self._reading: dict[asyncio.Timeout, Hashable] = {}  # whose it is, the oldest first

    async def read(self, context: Context, owner: Hashable, which: Which = only_one) -> Any:
        """The message of a call, or None. Raises `MalformedRequest`, `TooLarge` and `UnavailableError`."""
        await self._enter()
        try:
            self._load.bodies.reserve(self._largest)
            try:
                unread = await self._within(which(context), owner)
            finally:
                self._load.bodies.free(self._largest)
        finally:
            self._leave()
        return unread and unread.read()

    async def _enter(self) -> None:
        if self._waiting >= MOST_WAITING:
            raise UnavailableError(f"more than {MOST_WAITING} messages wait to be read", retry_after_s=RETRY_AFTER_S)
        self._waiting += 1
        try:
            while self._room.locked():
                try:
                    async with asyncio.timeout(self.patience_s):
                        await self._room.acquire()
                        return
                except TimeoutError:
                    self._end_one()
            await self._room.acquire()
        finally:
            self._waiting -= 1

    def _leave(self) -> None:
        self._room.release()

    async def _within(self, message: Awaitable[Any], owner: Hashable) -> Any:
        try:
            async with asyncio.timeout(WITHIN_S) as limit:
                self._reading[limit] = owner
                return await message
        except TimeoutError:
            if limit in self._reading:
                raise MalformedRequest(f"expected the message within {WITHIN_S:.0f} s") from None
            words = "the message came in slowly, and others wait to be read"
            raise UnavailableError(words, retry_after_s=RETRY_AFTER_S) from None
        finally:
            self._reading.pop(limit, None)

    def _end_one(self) -> None:
        now, owned = asyncio.get_running_loop().time(), Counter(self._reading.values())
        late = [one for one in self._reading if (one.when() or now) <= now + WITHIN_S - self.patience_s]
        if late:
            slowest = max(late, key=lambda one: owned[self._reading[one]])
            del self._reading[slowest]
            slowest.reschedule(now)


class StrangersReads(Reads):
    """Those of somebody who shows no credential. Nobody waits here, or a few could keep all others waiting."""

    patience_s = 0.0

    async def _enter(self) -> None:
        if len(self._reading) >= MOST_STRANGERS:
            self._end_one()

    def _leave(self) -> None:
        pass


def largest(options: ServerOptions) -> int:
    """No message can be larger: one that has no room among all bodies would be refused when it is there."""
    return max(1, min(options.max_message_bytes, options.max_bodies_bytes * 3 // 4))


def owner(credential: Credential, address: str) -> Hashable:
    """Whom reads are counted for; where no credential is wanted there is nothing but an address."""
    return whose(address) if credential is ANYONE else (credential.tenant, credential.name)
