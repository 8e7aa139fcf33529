"""One trial: a fleet works, something happens to the server, the fleet goes on, and the checker has the last word."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from tests.crash import check_states, checker, facts, final, fleet
from tests.crash.history import History, load
from tests.crash.server import MANY_SNAPSHOTS, MEMORY, Server, ServerEnded
from tests.crash.violation import Violation
from tests.crash.wire import Stuck

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from tests.crash.history import Operation

KILLED, READY = "killed", "ready"


@dataclass(frozen=True)
class Summary:
    """What came of a trial."""

    seed: int
    kills: int
    tells: int
    items: int
    restart_s: float
    violations: list[Violation] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {self.kills} kills, {self.tells} acked tells, {self.items} acked items,"
            f" restart p50 {self.restart_s:.2f} s, {len(self.violations)} violations"
        )


ENOUGH_ANSWERS = 100  # after the last kill, to see that work goes on


@dataclass
class Trial:
    """`seed` decides what crawlers do; `heal_s` is how long they go on after the last kill."""

    folder: Path
    seed: int
    heal_s: float = 2.0
    forgetful: bool = False  # a server without a folder, to see that the checker notices
    kills: int = 0
    restarts: list[float] = field(default_factory=list)
    troubles: list[Violation] = field(default_factory=list)

    async def run(self, chaos: Callable[[Trial, Server], Awaitable[None]]) -> Summary:
        """`chaos` starts the server, kills it, and leaves it running."""
        live: final.Final | None = None
        with History(self.folder / "history.jsonl") as history:
            self.history = history
            try:
                live = await self._served(chaos)
            except* (ServerEnded, Stuck) as problems:
                self.troubles += [Violation("I6", str(problem)) for problem in _flat(problems)]
        return await self._judged(live)

    async def _served(self, chaos: Callable[[Trial, Server], Awaitable[None]]) -> final.Final:
        """What the server says of itself at the end. Ends it one way or the other: it must not matter."""
        async with self._serving() as server:
            live = await self._worked(server, chaos)
            await server.end(signal.SIGKILL if self.seed % 2 else signal.SIGTERM)
            if "Traceback" in server.said():
                self.troubles.append(Violation("I6", f"the server met a fault: {server.said()[-3_000:]}"))
        return live

    @contextlib.asynccontextmanager
    async def _serving(self) -> AsyncIterator[Server]:
        server = Server(self.folder, MEMORY if self.forgetful else str(self.data), MANY_SNAPSHOTS)
        try:
            yield server
        finally:
            await server.kill()

    async def _worked(self, server: Server, chaos: Callable[[Trial, Server], Awaitable[None]]) -> final.Final:
        async with fleet.connection(server.port) as http, asyncio.TaskGroup() as tasks:
            self.fleet = fleet.Fleet(http, self.history, self.seed)
            tasks.create_task(self.fleet.work())
            await chaos(self, server)
            await self.fleet.prepared.wait()
            self.history.note(checker.HEALED)
            known = self.history.answers
            await asyncio.sleep(self.heal_s)
            await self.history.reaches(known + ENOUGH_ANSWERS)
            self.fleet.stop.set()
        async with fleet.connection(server.port) as http:
            return await final.of_server(http)

    async def _judged(self, live: final.Final | None) -> Summary:
        """A server that did not last until the end has nothing to be held against."""
        operations, notes = load(self.history.path)
        broken = list(self.troubles)
        if live is not None:
            stored = live if self.forgetful else await final.of_folder(self.data)
            broken += [*check_states.same(live, stored), *checker.check(operations, notes, stored)]
        restart_s = median(self.restarts) if self.restarts else 0.0
        return Summary(self.seed, self.kills, _tells(operations), _items(operations), restart_s, broken)

    async def start(self, server: Server, faultpoint: str | None = None) -> None:
        took = await server.start(faultpoint)
        if self.kills:
            self.restarts.append(took)
        self.history.note(READY)

    async def kill(self, server: Server) -> None:
        await server.kill()
        self.kills += 1
        self.history.note(KILLED)

    @property
    def data(self) -> Path:
        return self.folder / "data"


def _flat(group: BaseExceptionGroup[Exception]) -> Iterator[Exception]:
    """Groups of tasks within groups of tasks wrap what happened as often."""
    for problem in group.exceptions:
        if isinstance(problem, BaseExceptionGroup):
            yield from _flat(problem)
        else:
            yield problem


def _tells(operations: list[Operation]) -> int:
    return sum(operation.invoke.kind == "tell" and bool(operation.answers) for operation in operations)


def _items(operations: list[Operation]) -> int:
    return sum(item.word is facts.Word.KEPT for item in facts.told(operations))
