"""The first use of a strategy: its kernels are compiled before the crawl that names it is answered.

A process of its own compiles, and other crawls are served meanwhile; machine code that was kept is loaded in a thread.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import closing
from importlib import import_module

from crawlguide.core import compiling
from crawlguide.core.aside import aside
from crawlguide.core.telemetry import happened

LOOKED_AT_EACH_S = 0.05


async def load(module: str) -> None:
    """Load a strategy, after everything that it needs was compiled."""
    if module not in sys.modules and not compiling.all_compiled([module]):
        kind = module.rpartition(".")[2]
        happened(
            "compiling", "compiling strategy {strategy} for this machine; others are served meanwhile", strategy=kind
        )
        await _compile(module)
    await aside(import_module, module)


async def _compile(module: str) -> None:
    """What a process that cannot be started leaves undone is compiled when the module is loaded."""
    compiler = compiling.compiler_of(module)
    if compiler is None or compiler.stdin is None:
        return
    with closing(compiler.stdin):  # upon which it ends, if nobody waits any more
        while compiler.poll() is None:  # noqa: ASYNC110 - a process outside of the event loop, which any loop can watch
            await asyncio.sleep(LOOKED_AT_EACH_S)
    if compiler.returncode == 0:
        compiling.remember([module])
