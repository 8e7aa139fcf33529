"""Long work in turns: others on the event loop are served between its portions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

Item = TypeVar("Item")


async def in_turns(items: Sequence[Item], at_once: int) -> AsyncIterator[Sequence[Item]]:
    """All items in their order, so many at a time."""
    for start in range(0, len(items), at_once):
        if start:
            await asyncio.sleep(0)
        yield items[start : start + at_once]
