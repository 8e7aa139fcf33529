"""Long work in turns: others on the event loop are served between its portions."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

Item = TypeVar("Item")
LONG_BYTES = 16 * 1024  # of a message or definition
LONG_ROWS = 1_000  # of a batch
TURNS = 10  # of the loop that a request takes through gRPC, the longest way in: read, begun, answered, handed back


class Line:
    """Whoever works long stands in it before the next portion: one goes on in each turn of the loop.

    However many work long at once, a short request waits for few of their portions.
    """

    def __init__(self) -> None:
        self._waiting = deque[asyncio.Future[None]]()
        self._taken = False  # this turn of the loop

    async def stand(self) -> None:
        if self._taken:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        else:
            self._take()

    def _take(self) -> None:
        self._taken = True
        asyncio.get_running_loop().call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._taken = False
        while self._waiting and not self._taken:
            turn = self._waiting.popleft()
            if not turn.done():  # else whoever stood there has left
                turn.set_result(None)
                self._take()


_lines: WeakKeyDictionary[asyncio.AbstractEventLoop, Line] = WeakKeyDictionary()  # a loop has one


async def short_requests_first() -> None:
    """A short request that came before is answered before this returns."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def let_others() -> None:
    """Others are served now: short requests first, and then one by one those who work as long as this one."""
    await short_requests_first()
    loop = asyncio.get_running_loop()
    line = _lines.get(loop)
    if line is None:
        line = _lines[loop] = Line()
    await line.stand()


async def make_way(size: int) -> None:
    """A message or definition of so many bytes was worked on; others are served now if it was long."""
    if size > LONG_BYTES:
        await let_others()


async def between_steps(rows: int) -> None:
    """A step with a batch of so many rows is done; others are served before the next one if they are many."""
    if rows > LONG_ROWS:
        await let_others()


async def in_turns(items: Sequence[Item], at_once: int) -> AsyncIterator[Sequence[Item]]:
    """All items in their order, so many at a time."""
    for start in range(0, len(items), at_once):
        if start:
            await let_others()
        yield items[start : start + at_once]
