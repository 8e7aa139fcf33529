"""What is done to a server while a fleet works: killed at random instants, or made to die at a named point."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

from tests.crash.server import ServerEnded
from tests.crash.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tests.crash.server import Server
    from tests.crash.trial import Trial

EARLIEST_S, LATEST_S = 0.05, 0.4
DIED_AT_A_POINT = 137
FEW_ANSWERS, MANY_ANSWERS = 10, 60
REACHED_WITHIN = 4_000  # answers: a snapshot needs megabytes of log, which come with them however long that takes
FEW_PASSES, MANY_PASSES = 2, 12
RARE = "snapshot"  # comes once in many megabytes of log


def kills(count: int) -> Callable[[Trial, Server], Awaitable[None]]:
    """Once there is something to crawl, kill the server so many times, each time a moment after it was ready."""

    async def chaos(trial: Trial, server: Server) -> None:
        chance = Random(trial.seed)
        await trial.start(server)
        await trial.fleet.prepared.wait()  # also, on a fresh machine: until the strategies' kernels are compiled
        for _ in range(count):
            known = trial.history.answers
            await asyncio.sleep(chance.uniform(EARLIEST_S, LATEST_S))
            await trial.history.reaches(known + chance.randint(FEW_ANSWERS, MANY_ANSWERS))
            await trial.kill(server)
            await trial.start(server)

    return chaos


def points(names: Sequence[str]) -> Callable[[Trial, Server], Awaitable[None]]:
    """Let the server die at each of these points in turn, then start it as usual."""

    async def chaos(trial: Trial, server: Server) -> None:
        chance = Random(trial.seed)
        for name in names:
            passes = 1 if RARE in name else chance.randint(FEW_PASSES, MANY_PASSES)
            if not await _dies(trial, server, name, passes):
                trial.troubles.append(Violation("F1b", f"{name}: the server never came to this point"))
        await trial.start(server)

    return chaos


async def _dies(trial: Trial, server: Server, name: str, passes: int) -> bool:
    """Whether the server died at this pass of the point; if not, it is killed all the same."""
    trial.history.note(f"{name}:{passes}")
    try:
        await trial.start(server, f"{name}:{passes}")
        code = await server.ended_before(trial.history.reaches(trial.history.answers + REACHED_WITHIN))
    except ServerEnded as early:  # a point on the way to being ready
        code = early.code
    await trial.kill(server)
    return code == DIED_AT_A_POINT
