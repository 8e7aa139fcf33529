"""Long work in turns: others on the event loop are served between its portions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

Item = TypeVar("Item")
LONG_BYTES = 16 * 1024  # of a message or definition


async def make_way(size: int) -> None:
    """A message or definition of so many bytes was worked on; others are served now if it was long."""
    if size > LONG_BYTES:
        await asyncio.sleep(0)


async def in_turns(items: Sequence[Item], at_once: int) -> AsyncIterator[Sequence[Item]]:
    """All items in their order, so many at a time."""
    for start in range(0, len(items), at_once):
        if start:
            await asyncio.sleep(0)
        yield items[start : start + at_once]
