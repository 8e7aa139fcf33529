"""Background tasks of a server: each has a name, is started anew when it fails, and never takes the server along.

A task that waits to be started again is named in `/readyz`. Requests are answered meanwhile, so that the server stays
in service: what such a task would have done is done later.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from crawlguide.core.telemetry import SILENT, WARNING, happened

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from crawlguide.core.telemetry import Telemetry

FIRST_REST_S, LONGEST_REST_S = 1.0, 60.0
log = logging.getLogger(__name__)


class Supervisor:
    """Runs tasks until it is stopped."""

    def __init__(self, telemetry: Telemetry = SILENT) -> None:
        self._telemetry = telemetry
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._resting: set[str] = set()

    def start(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        self._tasks[name] = asyncio.create_task(self._kept(name, run), name=name)

    def not_running(self) -> list[str]:
        """Tasks that failed and are not started again yet."""
        return sorted(self._resting | {name for name, task in self._tasks.items() if task.done()})

    async def stop(self) -> None:
        """End all, the one that was started last first."""
        for task in reversed(self._tasks.values()):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._tasks.clear()

    async def _kept(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """For ever. The rests between failures get longer, until it has run for longer than the longest of them."""
        rest_s, clock = FIRST_REST_S, asyncio.get_running_loop().time
        while True:
            began = clock()
            await self._once(name, run)
            rest_s = FIRST_REST_S if clock() - began > LONGEST_REST_S else rest_s
            self._resting.add(name)
            await asyncio.sleep(rest_s)
            self._resting.discard(name)
            rest_s = min(2 * rest_s, LONGEST_REST_S)
            happened("task_recovered", "{task} runs again", task=name)

    async def _once(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Returns when it has failed, however: also by wanting the whole process to exit, or by ending at all."""
        problem: BaseException | None = None
        try:
            await run()
        except asyncio.CancelledError as cancelled:
            if _is_being_cancelled():
                raise
            problem = cancelled  # of something it waited for
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as fault:  # noqa: BLE001 - out of memory, too deep, whatever: the server goes on
            problem = fault
        log.error("background task %s failed", name, exc_info=problem)
        words = "background task {task} failed and is started again: {problem}"
        happened("task_failed", words, WARNING, task=name, problem=repr(problem)[:200])
        self._telemetry.count("task_failures", task=name)


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
