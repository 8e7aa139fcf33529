"""What goes on for an errand though nobody waits for it any more: a name may be looked up for a minute.

As long as it does, the errand keeps its place. Otherwise a crawl with very many silent names would have its turn again
and again, until there is no room left to look up the names of others.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# Between whoever goes and whoever is asked stand libraries that would pass nothing on: a variable of the task does.
_left: ContextVar[set[asyncio.Future[Any]] | None] = ContextVar("left", default=None)


def leave(work: asyncio.Future[Any]) -> None:
    """Whoever asked for it does not wait for it any more."""
    left = _left.get()
    if left is not None:
        left.add(work)


@asynccontextmanager
async def all_finished() -> AsyncIterator[None]:
    """Ends when everything has ended that was left within; or at once if whoever goes is cancelled."""
    left: set[asyncio.Future[Any]] = set()
    before = _left.set(left)
    try:
        yield
    except asyncio.CancelledError:  # the server stops: nobody needs the place
        left.clear()
        raise
    finally:
        _left.reset(before)
        if left:
            await asyncio.wait(left)
