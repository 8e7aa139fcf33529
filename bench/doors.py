"""What does each door add to an ask, beside the bare transport doing nothing?

    .venv/bin/python -m bench.doors [--urls 100000] [--rounds 5] [--asks 256] [--connections 1 16 128]

For each door and number of connections: µs of the server's CPU for an ask of 30 URLs, what a client waits (p50, p99),
the same for a server on the same transport that answers any message with as many constant bytes, the guide's own CPU
for the same ask in this process, and the ratio (door - guide) / bare. At the end the CPU for a report with 20 links.

Server and client are two processes on one core: on two they might be two halves of one, and slow each other down. What
a client waits therefore includes its own work and that of the other connections. Medians of rounds, in which door,
bare transport and guide take turns.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec
import numpy as np
import uvicorn
import uvloop
from bench.sockets import fill

from crawlguide.core.config import Config
from crawlguide.core.messages import AskMessage
from crawlguide.gateway.opening import open_guide
from crawlguide.gateway.websocket import codecs, frames
from crawlguide.lab.speed.frontier import CRAWL, ask_body, report_body
from crawlguide.lab.speed.over_http import Connection
from crawlguide.lab.speed.server import serving

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence

    from crawlguide.gateway.websocket.codecs import Codec
    from crawlguide.guide.local import LocalGuide
    from crawlguide.lab.speed.server import Server

NAMES = count()
CRAWLER = "c"  # of the messages
MOST_RATIO = 1.3
HANDSHAKE = (
    "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: {}\r\n\r\n"
)


class Line(Protocol):
    """One connection. `call` sends a message, `kind` being `next` or `report`, and returns the answer's bytes."""

    async def call(self, kind: str, message: dict[str, Any]) -> bytes: ...

    def close(self) -> None: ...


class Door(NamedTuple):
    """A door: its name, how a client connects, what must stand in an answer, and the same transport doing nothing."""

    name: str
    connect: Callable[[dict[str, Any]], Awaitable[Line]]  # takes what the ready file says
    bare: Callable[[int], Coroutine[None, None, None]]  # prints its port and answers with so many bytes


class HttpLine:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @classmethod
    async def to(cls, ready: dict[str, Any]) -> HttpLine:
        return cls(await Connection.to(ready["port"]))

    async def call(self, kind: str, message: dict[str, Any]) -> bytes:
        return await self._connection.post(f"/v1/{kind}", message)

    def close(self) -> None:
        self._connection.close()


class SocketLine:
    """As plain as can be: the client shares the machine with what it measures."""

    def __init__(self, codec: Codec, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._codec, self._reader, self._writer = codec, reader, writer

    @classmethod
    async def to(cls, codec: Codec, ready: dict[str, Any]) -> SocketLine:
        line = cls(codec, *await asyncio.open_connection("127.0.0.1", ready["port"]))
        line._writer.write(HANDSHAKE.format(codec.name).encode())
        answer = await line._reader.readuntil(b"\r\n\r\n")
        if b" 101 " not in answer:
            raise RuntimeError(f"no socket: {answer[:200]!r}")
        return line

    async def call(self, kind: str, message: dict[str, Any]) -> bytes:
        self._writer.write(masked(self._codec.frame, self._codec.form.encode({"type": kind, "id": 1} | message)))
        head = await self._reader.readexactly(2)
        more = {126: 2, 127: 8}.get(head[1], 0)
        size = int.from_bytes(await self._reader.readexactly(more), "big") if more else head[1]
        return await self._reader.readexactly(size)

    def close(self) -> None:
        self._writer.transport.abort()


def masked(kind: int, body: bytes) -> bytes:
    """A frame with the mask zero, which is one like any other."""
    whole = frames.message(kind, [body])
    head = len(whole) - len(body)
    return bytes((whole[0], whole[1] | frames.MASKED)) + whole[2:head] + bytes(4) + body


# bare transports


async def bare_http(size: int) -> None:
    answer = b"x" * size
    start = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(size).encode())]}

    async def app(_: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await send(start)
        await send({"type": "http.response.body", "body": answer})

    await on_uvicorn(app)


async def bare_socket(kind: str, answer: str | bytes) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept", "subprotocol": scope["subprotocols"][0]})
        while (await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", kind: answer})

    await on_uvicorn(app)


async def on_uvicorn(app: Any) -> None:
    """As our server uses it."""
    config = uvicorn.Config(
        app, port=0, http="httptools", ws="websockets-sansio", ws_per_message_deflate=False, ws_ping_interval=None,
        lifespan="off", log_config=None, access_log=False, server_header=False, date_header=False,
    )  # fmt: skip
    listener = config.bind_socket()
    listener.listen(1_024)
    print(listener.getsockname()[1], flush=True)
    await uvicorn.Server(config).serve([listener])


DOORS = {
    door.name: door
    for door in (
        Door("HTTP", HttpLine.to, bare_http),
        Door(
            "WebSocket, JSON",
            lambda ready: SocketLine.to(codecs.JSON, ready),
            lambda size: bare_socket("text", "x" * size),
        ),
        Door(
            "WebSocket, MessagePack",
            lambda ready: SocketLine.to(codecs.MESSAGE_PACK, ready),
            lambda size: bare_socket("bytes", b"x" * size),
        ),
    )
}


@contextmanager
def doing_nothing(door: Door, size: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """A process with the bare transport: its id, and what its ready file would say."""
    command = [sys.executable, "-m", "bench.doors", "--bare", door.name, "--size", str(size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.pid, {"port": int(process.stdout.readline())}
        finally:
            process.kill()


# measuring


class Cost(NamedTuple):
    """Of one call, in µs."""

    cpu: float
    p50: float
    p99: float


def cpu_ns(process: int) -> int:
    """CPU time of all threads; finer than the hundredths of a second in `stat`."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{process}/task").iterdir())


async def spent(process: int, lines: Sequence[Line], kind: str, messages: Sequence[dict[str, Any]]) -> Cost:
    """All lines at once, each with its share of the messages, one after the other."""
    took = list[float]()

    async def talk(line: Line, mine: Sequence[dict[str, Any]]) -> None:
        for message in mine:
            began = time.perf_counter_ns()
            await line.call(kind, message)
            took.append((time.perf_counter_ns() - began) / 1e3)

    began = cpu_ns(process)
    await asyncio.gather(*(talk(line, messages[number :: len(lines)]) for number, line in enumerate(lines)))
    return Cost((cpu_ns(process) - began) / len(messages) / 1e3, float(np.median(took)), float(np.quantile(took, 0.99)))


async def own_cpu(guide: LocalGuide, asks: int) -> float:
    """µs of the guide itself for the same ask."""
    questions = [msgspec.convert(message, AskMessage) for message in questions_of(asks)]
    began = time.process_time_ns()
    for message in questions:
        check(bool((await guide.ask(message)).assigned_urls))
    took = (time.process_time_ns() - began) / asks / 1e3
    await guide.release(CRAWL, CRAWLER)
    return took


def questions_of(asks: int) -> list[dict[str, Any]]:
    return [ask_body(f"q{next(NAMES)}") for _ in range(asks)]


def check(found: bool) -> None:
    if not found:
        raise RuntimeError("nothing to measure: no URLs were assigned")


class Bench:
    """A server and a guide in this process that were filled alike."""

    def __init__(self, guide: LocalGuide, server: Server, options: argparse.Namespace) -> None:
        self._guide, self._server, self._options = guide, server, options

    async def run(self, door: Door) -> None:
        first = await door.connect(self._server.ready)
        answer = await first.call("next", ask_body(f"q{next(NAMES)}"))
        check(b"https://" in answer)
        first.close()
        with doing_nothing(door, len(answer)) as (process, ready):
            for many in self._options.connections:
                lines = [await door.connect(self._server.ready) for _ in range(many)]
                others = [await door.connect(ready) for _ in range(many)]
                rounds = [await self._round(lines, process, others) for _ in range(self._options.rounds + 1)][1:]
                self._show(door, many, rounds)
                for line in (*lines, *others):
                    line.close()

    async def _round(self, lines: list[Line], process: int, others: list[Line]) -> tuple[Cost, Cost, float]:
        asks = max(self._options.asks, len(lines))
        costs = await spent(self._server.process.pid, lines, "next", questions_of(asks))
        await self._give_back()
        return costs, await spent(process, others, "next", questions_of(asks)), await own_cpu(self._guide, asks)

    async def _give_back(self) -> None:
        line = await Connection.to(self._server.port)
        await line.post(f"/v1/crawls/{CRAWL.name}/release", {"crawler_id": CRAWLER})
        line.close()

    def _show(self, door: Door, many: int, rounds: list[tuple[Cost, Cost, float]]) -> None:
        ours, bare = (Cost(*(statistics.median(column) for column in zip(*costs, strict=True))) for costs in
                      ([one[0] for one in rounds], [one[1] for one in rounds]))  # fmt: skip
        guide = statistics.median(own for _, _, own in rounds)
        ratio = statistics.median((one.cpu - own) / other.cpu for one, other, own in rounds)
        waits = f"{ours.p50:.0f} / {ours.p99:.0f} | {bare.p50:.0f} / {bare.p99:.0f}"
        print(
            f"| {door.name} | {many} | {ours.cpu:.0f} | {guide:.0f} | {bare.cpu:.0f} | {ratio:.2f} | {waits} |",
            flush=True,
        )

    async def reports(self) -> None:
        """What a report costs, by door, in turns."""
        lines = {name: await door.connect(self._server.ready) for name, door in DOORS.items()}
        costs: dict[str, list[float]] = {name: [] for name in DOORS}
        for _ in range(self._options.rounds):
            for name, line in lines.items():
                names = [f"t{next(NAMES)}" for _ in range(self._options.asks)]
                told = [report_body([f"https://told.example/{name}"], name) for name in names]
                costs[name].append((await spent(self._server.process.pid, [line], "report", told)).cpu)
        for name, line in lines.items():
            print(f"| {name} | {statistics.median(costs[name]):.0f} |", flush=True)
            line.close()


async def main(options: argparse.Namespace, scratch: Path) -> None:
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # the servers inherit it
    guide = open_guide(":memory:", Config())
    with serving(Path(":memory:"), scratch) as server:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))  # no client pushes a server aside to read answers
        await fill(guide, server, options.urls)
        gc.collect()
        gc.freeze()
        bench = Bench(guide, server, options)
        print("\n| door | connections | server CPU µs | guide alone | bare transport | (door − guide) / bare |"
              " p50 / p99 µs | bare p50 / p99 µs |\n|---|---|---|---|---|---|---|---|", flush=True)  # fmt: skip
        for door in DOORS.values():
            await bench.run(door)
        print(f"\nAt most {MOST_RATIO} is wanted.\n\n| door | server CPU µs for a report with 20 links |\n|---|---|")
        await bench.reports()
    await guide.close()
    print(f"\nload {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--urls", type=int, default=100_000)
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--asks", type=int, default=256, help="in a round, over all connections")
    words.add_argument("--connections", type=int, nargs="+", default=[1, 16, 128])
    words.add_argument("--bare", choices=DOORS, help=argparse.SUPPRESS)
    words.add_argument("--size", type=int, help=argparse.SUPPRESS)
    given = words.parse_args()
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(DOORS[given.bare].bare(given.size) if given.bare else main(given, Path(folder)))
