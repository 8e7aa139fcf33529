"""Where does the CPU of a door go? A server whose parts are timed, and what each of them takes for an ask.

    .venv/bin/python -m bench.door_parts [--urls 100000] [--asks 512] [--rounds 5]

Of an ask for 30 URLs on one connection, in one run: the bare transport, which answers any message with as many constant
bytes; the same where it asks a guide before each answer, without what that guide takes (the caches of the processor are
the guide's then, and all that a transport touches has to come back into them); the guide; and the rest, which is our
own. Then the same with the door divided further.

Each part is timed in the server itself, by the CPU clock of its thread, one step of a coroutine after the other: what
others do while it waits is not its own, and what one part calls of another is that other's. The guide is a part like
any other, so that what is left is the door's for the same ask, over the same state, in the same process. What no part
has is the transport's: parsing, frames, system calls, turns of the event loop. To look at the clock takes a part of a
microsecond itself; the last line says how much.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import mmap
import os
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import wraps
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import uvloop
from bench import doors
from bench.sockets import fill
from tests.gateway.bus.common import NatsServer

from crawlguide.cli import main
from crawlguide.core.config import Config
from crawlguide.gateway import http, wire
from crawlguide.gateway.access.check import AccessCheck
from crawlguide.gateway.access.entrance import Entrance
from crawlguide.gateway.bus import answering
from crawlguide.gateway.grpc import server, streams, transport
from crawlguide.gateway.load import Turns
from crawlguide.gateway.opening import open_guide
from crawlguide.gateway.service import Service
from crawlguide.gateway.websocket import codecs
from crawlguide.gateway.websocket.session import Session
from crawlguide.guide.local import LocalGuide
from crawlguide.lab.speed.frontier import CRAWL, URLS_OUT, ask_message, filled_guide
from crawlguide.lab.speed.over_http import Connection
from crawlguide.lab.speed.server import serving

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator

    from bench.doors import Door, Line

    from crawlguide.lab.speed.server import Server

GUIDE, REST = "guide", "transport and the rest"
PARTS = (GUIDE, "entrance", "turns", "decode", "encode", "count and log", "service", "endpoint", "layers of HTTP")
PLACES = "BENCH_DOOR_PARTS"  # names the file in which a server keeps its times
HOSTS = 50_000  # as `fill` has them
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
    for name in ("ask", "_ask"):
        setattr(LocalGuide, name, times.stepped(GUIDE, getattr(LocalGuide, name)))


def time_all(times: Times) -> None:
    """Every part by itself."""
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
        (http.Door, "_answer", "endpoint"), (Session, "_served", "endpoint"), (server.GrpcDoor, "unary", "endpoint"),
        (streams.Conversation, "_answered", "endpoint"), (answering.Answering, "_request", "endpoint"),
        (AccessCheck, "__call__", "layers of HTTP"),
    ]  # fmt: skip
    for place, name, part in plain:
        setattr(place, name, times.plain(part, getattr(place, name)))
    for place, name, part in stepped:
        setattr(place, name, times.stepped(part, getattr(place, name)))


class Bare(NamedTuple):
    """A process with a bare transport, and the times of the guide that it asks, if it has one."""

    process: int
    line: Line
    times: Times | None = None

    async def cpu(self, asks: int) -> float:
        """µs of one answer, without the guide's."""
        before = self._guide()
        whole = (await doors.spent(self.process, [self.line], "next", doors.questions_of(asks))).cpu
        return whole - (self._guide() - before) / asks / 1e3

    def _guide(self) -> int:
        return self.times.read()[2 * PARTS.index(GUIDE)] if self.times is not None else 0


class Bench:
    """A server of which some parts are timed, filled like any other."""

    def __init__(self, server: Server, times: Times, options: argparse.Namespace, scratch: Path) -> None:
        self._process, self._ready = server.process.pid, server.ready
        self._times, self._options, self._scratch = times, options, scratch

    async def three(self, door: Door) -> None:
        """Bare transport, guide and our own, in turns."""
        line = await door.connect(self._ready)
        size = len(await line.call("next", doors.questions_of(1)[0]))
        with doors.doing_nothing(door, size) as nothing, self._asking(door, size) as (asking, times):
            lines = [await door.connect(ready) for _, ready in (nothing, asking)]
            bare, around = Bare(nothing[0], lines[0]), Bare(asking[0], lines[1], times)
            rounds = [await self._compared(line, bare, around) for _ in range(self._options.rounds + 1)][1:]
            for other in lines:
                other.close()
        line.close()
        middle = [statistics.median(column) for column in zip(*rounds, strict=True)]
        whole, nothing_cpu, around_cpu, guide_cpu = middle
        shown = [f"{value:.0f}" for value in (*middle[:3], whole - around_cpu - guide_cpu, guide_cpu)]
        ratios = [(whole - guide_cpu) / nothing_cpu, (whole - guide_cpu) / around_cpu, whole / guide_cpu]
        print(f"| {door.name} | {' | '.join(shown + [f'{ratio:.2f}' for ratio in ratios])} |", flush=True)

    @contextmanager
    def _asking(self, door: Door, size: int) -> Iterator[tuple[tuple[int, dict[str, Any]], Times]]:
        """The bare transport with a guide of its own, which has enough for all rounds, and that guide's times."""
        file, server_file = self._scratch / "asking", os.environ[PLACES]
        times, options = Times.created(file), self._options
        os.environ[PLACES] = str(file)
        urls = options.urls + (options.rounds + 1) * options.asks * URLS_OUT
        with doors.doing_nothing(door, size, "bench.door_parts", "--urls", str(urls)) as asking:
            os.environ[PLACES] = server_file
            yield asking, times

    async def _compared(self, line: Line, bare: Bare, around: Bare) -> tuple[float, ...]:
        """µs of the door, of the bare transport doing nothing and around a guide, and of the door's guide."""
        asks = self._options.asks
        whole, parts = await self._timed(line)
        return whole, await bare.cpu(asks), await around.cpu(asks), parts[PARTS.index(GUIDE)]

    async def parts(self, door: Door) -> None:
        line = await door.connect(self._ready)
        rounds = [await self._divided(line) for _ in range(self._options.rounds + 1)][1:]
        line.close()
        middle = [statistics.median(column) for column in zip(*rounds, strict=True)]
        print(f"| {door.name} | {' | '.join(f'{value:.0f}' for value in middle)} |", flush=True)

    async def _divided(self, line: Line) -> list[float]:
        whole, parts = await self._timed(line)
        return [whole, *parts, whole - sum(parts)]

    async def _timed(self, line: Line) -> tuple[float, list[float]]:
        """µs of an ask, and of each part of it."""
        before = self._times.read()
        whole = (await doors.spent(self._process, [line], "next", doors.questions_of(self._options.asks))).cpu
        after = self._times.read()
        await self._give_back()
        asks = self._options.asks
        return whole, [(now - then) / asks / 1e3 for now, then in zip(after[::2], before[::2], strict=True)]

    async def _give_back(self) -> None:
        line = await Connection.to(self._ready["port"])
        await line.post(f"/v1/crawls/{CRAWL.name}/release", {"crawler_id": doors.CRAWLER})
        line.close()


async def measure(options: argparse.Namespace, scratch: Path) -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # the servers inherit it
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))  # no client pushes a server aside to read answers
    table(
        "door", "all", "bare transport", "around a guide", "our own", GUIDE, "(all − guide) / bare",
        "(all − guide) / around a guide", "all / guide",
    )  # fmt: skip
    await with_server(options, scratch, GUIDE, Bench.three)
    table("door", "all", *PARTS, REST)
    await with_server(options, scratch, "all", Bench.parts)
    await asyncio.gather(*doors.CLOSING)
    print(f"\nA look at the clock takes {_look_ns():.0f} ns; a part takes two.")


def table(*heads: str) -> None:
    print(f"\n| {' | '.join(heads)} |\n{'|---' * len(heads)}|", flush=True)


async def with_server(
    options: argparse.Namespace, scratch: Path, timed: str, work: Callable[[Bench, Door], Awaitable[None]]
) -> None:
    times = Times.created(scratch / "parts")
    os.environ[PLACES] = str(scratch / "parts")
    command = (sys.executable, "-m", "bench.door_parts", "--serve", timed)
    guide = open_guide(":memory:", Config())  # `fill` wants one, and it costs nothing here
    with serving(Path(":memory:"), scratch, "--grpc-port", "0", command=command) as server:
        await fill(guide, server, options.urls)
        bench = Bench(server, times, options, scratch)
        for name in options.doors:
            await work(bench, doors.DOORS[name])
    await guide.close()


def _look_ns() -> float:
    began = CLOCK()
    for _ in range(10_000):
        CLOCK()
    return (CLOCK() - began) / 10_000


def serve(what: str, arguments: list[str]) -> None:
    """`crawlguide serve`, timed."""
    times = Times(Path(os.environ[PLACES]))
    (time_all if what == "all" else time_guide)(times)
    sys.argv = ["crawlguide", *arguments]
    main()


async def ask_before(name: str, size: int, urls: int) -> None:
    """The bare transport, which asks a guide of its own before each answer."""
    time_guide(Times(Path(os.environ[PLACES])))
    guide, names = await filled_guide(":memory:", urls, HOSTS), count()
    gc.collect()
    gc.freeze()
    await doors.DOORS[name].bare(size, lambda: guide.ask(ask_message(f"b{next(names)}")))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], sys.argv[3:])
        sys.exit()
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--urls", type=int, default=100_000)
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--asks", type=int, default=512)
    words.add_argument("--doors", nargs="+", choices=doors.DOORS, default=list(doors.DOORS))
    words.add_argument("--bare", choices=doors.DOORS, help=argparse.SUPPRESS)
    words.add_argument("--size", type=int, help=argparse.SUPPRESS)
    given = words.parse_args()
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if given.bare:
            runner.run(ask_before(given.bare, given.size, given.urls))
            sys.exit()
        bus = NatsServer(Path(folder) / "nats", jetstream=False)
        os.environ[doors.NATS] = bus.url
        try:
            runner.run(measure(given, Path(folder)))
        finally:
            bus.stop()
