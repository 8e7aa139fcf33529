"""Where does the CPU of a door go? A server whose parts are timed, and what each of them takes for an ask.

    .venv/bin/python -m bench.door_parts [--urls 100000] [--asks 512] [--rounds 3]

Each part is timed in the server itself, by the CPU clock of its thread, one step of a coroutine after the other: what
others do while it waits is not its own, and what one part calls of another is that other's. The guide is a part like
any other, so that what is left is the door's for the same ask, over the same state, in the same process. What no part
has is the transport's: parsing, frames, system calls, turns of the event loop. To look at the clock takes a part of a
microsecond itself; the last line says how much.
"""

from __future__ import annotations

import argparse
import asyncio
import mmap
import os
import statistics
import sys
import tempfile
import time
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

GUIDE, REST = "guide", "transport and the rest"
PARTS = (GUIDE, "entrance", "turns", "decode", "encode", "count and log", "service", "endpoint", "layers of HTTP")
PLACES = "CRAWLGUIDE_BENCH_PARTS"  # names the file in which a server keeps its times
CLOCK = time.thread_time_ns


class Times:
    """ns of each part and how often it was called, in a file that another process reads at any time."""

    def __init__(self, file: Path) -> None:
        with file.open("r+b") as opened:
            self._shared = mmap.mmap(opened.fileno(), 16 * len(PARTS))
        self._places = memoryview(self._shared).cast("q")
        self._stack: list[int] = []  # ns that inner parts have taken, of each part that runs now

    @classmethod
    def created(cls, file: Path) -> Times:
        file.write_bytes(bytes(16 * len(PARTS)))
        return cls(file)

    def read(self) -> list[int]:
        return self._places.tolist()

    def step(self, part: int, work: Callable[..., Any], *given: Any, **named: Any) -> Any:
        stack = self._stack
        stack.append(0)
        began = CLOCK()
        try:
            return work(*given, **named)
        finally:
            took = CLOCK() - began
            self._places[2 * part] += took - stack.pop()
            if stack:
                stack[-1] += took

    def plain(self, part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        number = PARTS.index(part)

        @wraps(work)
        def timed(*given: Any, **named: Any) -> Any:
            self._places[2 * number + 1] += 1
            return self.step(number, work, *given, **named)

        return timed

    def stepped(self, part: str, work: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
        """A coroutine, of which only the steps are timed and not what it waits for."""
        number = PARTS.index(part)

        @wraps(work)
        async def timed(*given: Any, **named: Any) -> Any:
            self._places[2 * number + 1] += 1
            return await Stepped(self, number, work(*given, **named))

        return timed


class Stepped:
    def __init__(self, times: Times, part: int, work: Coroutine[Any, Any, Any]) -> None:
        self._times, self._part, self._work = times, part, work

    def __await__(self) -> Generator[Any, Any, Any]:
        send, throw, step, part = self._work.send, self._work.throw, self._times.step, self._part
        given: Any = None
        wrong: BaseException | None = None
        while True:
            try:
                awaited = step(part, send, given) if wrong is None else step(part, throw, wrong)
            except StopIteration as done:
                return done.value
            given = wrong = None
            try:
                given = yield awaited
            except BaseException as problem:  # noqa: BLE001 - it is thrown into who waits
                wrong = problem


def time_guide(times: Times) -> None:
    """The guide alone: what it does at once, and in the task that brings an ask to its end."""
    from crawlguide.guide.local import LocalGuide

    for name in ("ask", "_ask"):
        setattr(LocalGuide, name, times.stepped(GUIDE, getattr(LocalGuide, name)))


def time_all(times: Times) -> None:
    """Every part by itself."""
    from crawlguide.gateway import bodies, wire
    from crawlguide.gateway.access.entrance import Entrance
    from crawlguide.gateway.bus import answering
    from crawlguide.gateway.grpc import server, streams, transport
    from crawlguide.gateway.http import Door
    from crawlguide.gateway.load import Turns
    from crawlguide.gateway.service import Service
    from crawlguide.gateway.websocket import codecs
    from crawlguide.gateway.websocket.session import Session

    time_guide(times)
    plain: list[tuple[Any, str, str]] = [
        (Entrance, "admit", "entrance"), (Turns, "wait", "turns"), (Turns, "_turn", "turns"),
        (wire, "decode", "decode"), (codecs.Codec, "envelope", "decode"), (transport.Unread, "read", "decode"),
        (server, "message_of", "decode"), (wire, "encode", "encode"), (codecs.Codec, "encode", "encode"),
        (server, "written", "encode"), (streams, "written", "encode"), (Service, "answered", "count and log"),
        (answering.Answering, "_count", "count and log"), (Session, "receive", "endpoint"),
    ]  # fmt: skip
    stepped: list[tuple[Any, str, str]] = [
        (Turns, "come", "turns"), (Service, "answer", "service"), (Service, "serve", "service"),
        (Door, "_answer", "endpoint"), (Session, "_served", "endpoint"), (server.GrpcDoor, "unary", "endpoint"),
        (streams.Conversation, "_answered", "endpoint"), (answering.Answering, "_now", "endpoint"),
        (bodies.BodyLimits, "__call__", "layers of HTTP"),
    ]  # fmt: skip
    for place, name, part in plain:
        setattr(place, name, times.plain(part, getattr(place, name)))
    for place, name, part in stepped:
        setattr(place, name, times.stepped(part, getattr(place, name)))


async def measure(options: argparse.Namespace, scratch: Path) -> None:
    from bench import doors
    from bench.sockets import fill

    from crawlguide.core.config import Config
    from crawlguide.gateway.opening import open_guide

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # the server inherits it
    times = Times.created(scratch / "parts")
    os.environ[PLACES] = str(scratch / "parts")
    guide = open_guide(":memory:", Config())
    command = (sys.executable, "-m", "bench.door_parts", "--serve", "all")
    with doors.serving(Path(":memory:"), scratch, "--grpc-port", "0", command=command) as server:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        await fill(guide, server, options.urls)
        print(f"| door | all | {' | '.join(PARTS)} | {REST} |\n{'|---' * (len(PARTS) + 3)}|", flush=True)
        for door in doors.DOORS.values():
            line = await door.connect(server.ready)
            rounds = [await _one(server.process.pid, times, line, options.asks) for _ in range(options.rounds + 1)][1:]
            middle = [statistics.median(column) for column in zip(*rounds, strict=True)]
            print(f"| {door.name} | {' | '.join(f'{value:.0f}' for value in middle)} |", flush=True)
            line.close()
        await asyncio.gather(*doors.CLOSING)
    await guide.close()
    print(f"\nA look at the clock takes {_look_ns():.0f} ns; a part takes two.")


async def _one(process: int, times: Times, line: Any, asks: int) -> list[float]:
    """µs of an ask: all of them, each part, the rest."""
    from bench import doors

    asked = doors.questions_of(asks)
    before = times.read()
    spent = (await doors.spent(process, [line], "next", asked)).cpu
    parts = [(now - then) / asks / 1e3 for now, then in zip(times.read()[::2], before[::2], strict=True)]
    return [spent, *parts, spent - sum(parts)]


def _look_ns() -> float:
    began = CLOCK()
    for _ in range(10_000):
        CLOCK()
    return (CLOCK() - began) / 10_000


def serve(what: str, arguments: list[str]) -> None:
    """`crawlguide serve`, timed."""
    from crawlguide.cli import main

    times = Times(Path(os.environ[PLACES]))
    (time_all if what == "all" else time_guide)(times)
    sys.argv = ["crawlguide", *arguments]
    main()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], sys.argv[3:])
        sys.exit()
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--urls", type=int, default=100_000)
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--asks", type=int, default=512)
    given = words.parse_args()
    import uvloop
    from bench import doors as lines
    from tests.gateway.bus.common import NatsServer

    with tempfile.TemporaryDirectory() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        bus = NatsServer(Path(folder) / "nats", jetstream=False)
        os.environ[lines.NATS] = bus.url
        try:
            runner.run(measure(given, Path(folder)))
        finally:
            bus.stop()
