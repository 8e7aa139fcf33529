"""The commit thread: whoever waits while one sync runs shares the next one."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

Waiter = tuple[asyncio.AbstractEventLoop, "asyncio.Future[None]"]


class Committer:
    """Group commit: many requests wait for one sync of the disk."""

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._waiting: list[Waiter] = []
        self._wanted = False  # although nobody waits
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._ends = False
        self._thread = threading.Thread(target=self._run, name="crawlguide-commit", daemon=True)
        self._thread.start()

    async def synced(self) -> None:
        """Returning means: all that was written before the call is on stable storage."""
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        with self._lock:
            self._waiting.append((loop, done))
        self._wake.set()
        await done

    def sync_soon(self) -> None:
        """For what nobody waits for."""
        self._wanted = True
        self._wake.set()

    def close(self) -> None:
        self._ends = True
        while self._thread.is_alive():
            self._wake.set()
            self._thread.join(0.05)

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            with self._lock:
                waiting, self._waiting = self._waiting, []
            if waiting or self._wanted:
                self._wanted = False
                self._serve(waiting)
            elif self._ends:  # nobody is left waiting
                return

    def _serve(self, waiting: list[Waiter]) -> None:
        problem: Exception | None = None
        try:
            self._sync()
        except Exception as raised:  # noqa: BLE001 - whoever waits is told, whatever it is
            problem = raised
        for loop in {loop for loop, _ in waiting}:
            mine = [done for its_loop, done in waiting if its_loop is loop]
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, mine, problem)


def _settle(waiting: list[asyncio.Future[None]], problem: Exception | None) -> None:
    for done in waiting:
        if done.done():  # whoever waited has gone
            continue
        if problem is None:
            done.set_result(None)
        else:
            done.set_exception(problem)
