"""Long work in turns: others on the event loop are served between its portions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

Item = TypeVar("Item")
LONG_BYTES = 16 * 1024  # of a message or definition
LONG_ROWS = 1_000  # of a batch
TURNS = 6  # of the loop that a request takes: it is read, begun, begun under its id, answered, handed back twice


async def let_others() -> None:
    """Others are served now. A short request that comes meanwhile is answered before this returns."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


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
