"""Long work in a thread of its own, so that the event loop goes on serving others meanwhile."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Given = ParamSpec("Given")
Result = TypeVar("Result")

# Few, because all threads share one interpreter; and not those of asyncio, which the store needs to reach the disk.
_THREADS = ThreadPoolExecutor(2, thread_name_prefix="aside")


async def aside(work: Callable[Given, Result], *args: Given.args, **options: Given.kwargs) -> Result:
    """What `work` returns. It must touch nothing that the loop may change meanwhile."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, partial(work, *args, **options))
