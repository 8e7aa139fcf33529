"""What does each door add to an ask, beside the bare transport doing nothing?

    .venv/bin/python -m bench.doors [--urls 100000] [--rounds 5] [--asks 256] [--connections 1 16 128]

For each door and number of connections: µs of the server's CPU for an ask of 30 URLs, what a client waits (p50, p99),
the same for a server on the same transport that answers any message with as many constant bytes, the guide's own CPU
for the same ask in this process, and the ratio (door - guide) / bare. Then the same for an ask that is asked again
under its `request_id`, so that the stored answer is given: the guide does little, and the difference shows the door
alone, where that of two large numbers is a rough one. At the end the CPU for a report with 20 links.

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

import grpc
import grpc.aio
import msgspec
import nats
import numpy as np
import uvicorn
import uvloop
from bench.sockets import fill
from google.protobuf.json_format import ParseDict
from tests.gateway.bus.common import NatsServer

from crawlguide.core.config import BusOptions, Config
from crawlguide.core.messages import AskMessage
from crawlguide.gateway.grpc import guide_pb2
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

    Work = Callable[[], Awaitable[Any]]

NAMES = count()
CRAWLER = "c"  # of the messages
MOST_RATIO = 1.3
COMES_BACK_S = 0.05
GRPC = "/crawlguide.v1.Guide"
NATS, PREFIX, BARE_PREFIX = "CRAWLGUIDE_BUS_NATS", BusOptions().prefix, "nothing"
CLOSING: list[asyncio.Future[None]] = []  # connections that are being closed
HANDSHAKE = (
    "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: {}\r\n\r\n"
)


async def no_work() -> None:
    pass


class Line(Protocol):
    """One connection. `call` sends a message, `kind` being `next` or `report`, and returns the answer's bytes."""

    async def call(self, kind: str, message: dict[str, Any]) -> bytes: ...

    def close(self) -> None: ...


class Door(NamedTuple):
    """A door: its name, how a client connects, and the same transport doing nothing."""

    name: str
    connect: Callable[[dict[str, Any]], Awaitable[Line]]  # takes what the ready file says
    bare: Callable[[int, Work], Coroutine[None, None, None]]  # prints its port; works, answers with so many bytes


class RefusedError(Exception):
    """The server has too much to do; the client comes back."""


class HttpLine:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @classmethod
    async def to(cls, ready: dict[str, Any]) -> HttpLine:
        return cls(await Connection.to(ready["port"]))

    async def call(self, kind: str, message: dict[str, Any]) -> bytes:
        try:
            return await self._connection.post(f"/v1/{kind}", message)
        except RuntimeError as problem:
            if ": 503 " in str(problem):
                raise RefusedError from None
            raise

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
        answer = await self._reader.readexactly(size)
        if b"error" in answer[:20]:
            raise RefusedError(answer[:300])
        return answer

    def close(self) -> None:
        self._writer.transport.abort()


class GrpcLine:
    """A channel with a connection of its own. Answers are left as bytes."""

    def __init__(self, port: int, streams: bool) -> None:
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
        self._channel: Any = grpc.aio.insecure_channel(f"127.0.0.1:{port}", options)
        self._streams, self._open = streams, dict[str, Any]()

    @classmethod
    async def to(cls, streams: bool, ready: dict[str, Any]) -> GrpcLine:
        return cls(ready["grpc_port"], streams)

    async def call(self, kind: str, message: dict[str, Any]) -> bytes:
        method, request = ("Next", guide_pb2.AskMessage()) if kind == "next" else ("Report", guide_pb2.ReportMessage())
        body = ParseDict(message, request)
        try:
            if not self._streams:
                answer: bytes = await self._channel.unary_unary(f"{GRPC}/{method}")(body.SerializeToString())
                return answer
            return await self._said(method, body)
        except grpc.aio.AioRpcError as problem:
            raise RefusedError(problem.details()) from None

    async def _said(self, method: str, body: Any) -> bytes:
        if method not in self._open:
            self._open[method] = self._channel.stream_stream(f"{GRPC}/{method}Stream")()
        named: Any = (
            guide_pb2.NextStreamRequest(id="1", ask=body)
            if method == "Next"
            else guide_pb2.ReportStreamRequest(id="1", report=body)
        )
        await self._open[method].write(named.SerializeToString())
        answer: bytes = await self._open[method].read()
        return answer

    def close(self) -> None:
        for stream in self._open.values():
            stream.cancel()
        CLOSING.append(asyncio.ensure_future(self._channel.close()))


class NatsLine:
    def __init__(self, client: Any, prefix: str) -> None:
        self._client, self._prefix = client, prefix

    @classmethod
    async def to(cls, ready: dict[str, Any]) -> NatsLine:
        return cls(await nats.connect(os.environ[NATS]), ready.get("prefix", PREFIX))

    async def call(self, kind: str, message: dict[str, Any]) -> bytes:
        answer = await self._client.request(f"{self._prefix}.{kind}", msgspec.json.encode(message), 60)
        if (answer.headers or {}).get("status", "200") != "200":
            raise RefusedError(answer.data[:300])
        return bytes(answer.data)

    def close(self) -> None:
        CLOSING.append(asyncio.ensure_future(self._client.close()))


def masked(kind: int, body: bytes) -> bytes:
    """A frame with the mask zero, which is one like any other."""
    whole = frames.message(kind, [body])
    head = len(whole) - len(body)
    return bytes((whole[0], whole[1] | frames.MASKED)) + whole[2:head] + bytes(4) + body


# bare transports


async def bare_http(size: int, work: Work) -> None:
    answer = b"x" * size
    start = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(size).encode())]}

    async def app(_: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await work()
        await send(start)
        await send({"type": "http.response.body", "body": answer})

    await on_uvicorn(app)


async def bare_socket(kind: str, answer: str | bytes, work: Work) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept", "subprotocol": scope["subprotocols"][0]})
        while (await receive())["type"] == "websocket.receive":
            await work()
            await send({"type": "websocket.send", kind: answer})

    await on_uvicorn(app)


async def bare_grpc(size: int, work: Work) -> None:
    answer = b"x" * size

    async def one(_: bytes, __: Any) -> bytes:
        await work()
        return answer

    async def many(_: Any, context: Any) -> None:
        while await context.read() is not grpc.aio.EOF:
            await work()
            await context.write(answer)

    made: Any = {
        "Next": grpc.unary_unary_rpc_method_handler(one),
        "NextStream": grpc.stream_stream_rpc_method_handler(many),
    }
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(GRPC.strip("/"), made)])
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await server.wait_for_termination()


async def bare_nats(size: int, work: Work) -> None:
    """On the same server of NATS, under the names of which our own is told nothing."""
    client, answer = await nats.connect(os.environ[NATS]), b"x" * size

    async def respond(message: Any) -> None:
        await work()
        await message.respond(answer)

    await client.subscribe(f"{BARE_PREFIX}-{os.getpid()}.next", cb=respond)
    await client.flush()
    print(0, flush=True)
    await asyncio.Event().wait()


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
            lambda size, work: bare_socket("text", "x" * size, work),
        ),
        Door(
            "WebSocket, MessagePack",
            lambda ready: SocketLine.to(codecs.MESSAGE_PACK, ready),
            lambda size, work: bare_socket("bytes", b"x" * size, work),
        ),
        Door("gRPC", lambda ready: GrpcLine.to(False, ready), bare_grpc),
        Door("gRPC, stream", lambda ready: GrpcLine.to(True, ready), bare_grpc),
        Door("NATS", NatsLine.to, bare_nats),
    )
}


@contextmanager
def doing_nothing(
    door: Door, size: int, module: str = "bench.doors", *options: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """A process with the bare transport: its id, and what its ready file would say."""
    command = [sys.executable, "-m", module, "--bare", door.name, "--size", str(size), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            yield process.pid, {"port": port, "grpc_port": port, "prefix": f"{BARE_PREFIX}-{process.pid}"}
        finally:
            process.kill()


# measuring


class Cost(NamedTuple):
    """Of one call, in µs."""

    cpu: float
    p50: float
    p99: float


class Round(NamedTuple):
    """µs of the door and of the guide alone for an ask, of both for one that is asked again, of the bare transport."""

    ours: Cost
    own: float
    again: float
    own_again: float
    bare: Cost


def cpu_ns(process: int) -> int:
    """CPU time of all threads; finer than the hundredths of a second in `stat`."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{process}/task").iterdir())


async def spent(process: int, lines: Sequence[Line], kind: str, messages: Sequence[dict[str, Any]]) -> Cost:
    """All lines at once, each with its share of the messages, one after the other."""
    took = list[float]()

    async def talk(line: Line, mine: Sequence[dict[str, Any]]) -> None:
        for message in mine:
            began = time.perf_counter_ns()
            while not await answered(line, kind, message):  # noqa: ASYNC110 - the server has none to wait for
                await asyncio.sleep(COMES_BACK_S)
            took.append((time.perf_counter_ns() - began) / 1e3)

    began = cpu_ns(process)
    await asyncio.gather(*(talk(line, messages[number :: len(lines)]) for number, line in enumerate(lines)))
    return Cost((cpu_ns(process) - began) / len(messages) / 1e3, float(np.median(took)), float(np.quantile(took, 0.99)))


async def answered(line: Line, kind: str, message: dict[str, Any]) -> bool:
    try:
        await line.call(kind, message)
    except RefusedError:
        return False
    return True


async def own_cpu(guide: LocalGuide, asked: Sequence[dict[str, Any]]) -> float:
    """µs of the guide itself for the same asks."""
    questions = [msgspec.convert(message, AskMessage) for message in asked]
    began = time.process_time_ns()
    for message in questions:
        check(bool((await guide.ask(message)).assigned_urls))
    return (time.process_time_ns() - began) / len(asked) / 1e3


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

    async def _round(self, lines: list[Line], process: int, others: list[Line]) -> Round:
        asks = max(self._options.asks, len(lines))
        ours = await spent(self._server.process.pid, lines, "next", questions_of(asks))
        own = await own_cpu(self._guide, questions_of(asks))
        again = [ask_body(f"q{next(NAMES)}")] * asks
        await answered(lines[0], "next", again[0])
        await self._guide.ask(msgspec.convert(again[0], AskMessage))
        ours_again = await spent(self._server.process.pid, lines, "next", again)
        own_again = await own_cpu(self._guide, again)
        await self._give_back()
        return Round(ours, own, ours_again.cpu, own_again, await spent(process, others, "next", again))

    async def _give_back(self) -> None:
        line = await Connection.to(self._server.port)
        await line.post(f"/v1/crawls/{CRAWL.name}/release", {"crawler_id": CRAWLER})
        line.close()
        await self._guide.release(CRAWL, CRAWLER)

    def _show(self, door: Door, many: int, rounds: list[Round]) -> None:
        def middle(of: Callable[[Round], float]) -> float:
            return statistics.median(map(of, rounds))

        figures = [
            f"{middle(lambda one: one.ours.cpu):.0f}", f"{middle(lambda one: one.own):.0f}",
            f"{middle(lambda one: one.again):.0f}", f"{middle(lambda one: one.own_again):.0f}",
            f"{middle(lambda one: one.bare.cpu):.0f}",
            f"{middle(lambda one: (one.ours.cpu - one.own) / one.bare.cpu):.1f}",
            f"{middle(lambda one: (one.again - one.own_again) / one.bare.cpu):.1f}",
            f"{middle(lambda one: one.ours.p50):.0f} / {middle(lambda one: one.ours.p99):.0f}",
            f"{middle(lambda one: one.bare.p50):.0f} / {middle(lambda one: one.bare.p99):.0f}",
        ]  # fmt: skip
        print(f"| {door.name} | {many} | {' | '.join(figures)} |", flush=True)

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
    with serving(Path(":memory:"), scratch, "--grpc-port", "0") as server:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))  # no client pushes a server aside to read answers
        await fill(guide, server, options.urls)
        gc.collect()
        gc.freeze()
        bench = Bench(guide, server, options)
        heads = (
            "door", "connections", "server CPU µs", "guide alone", "asked again", "guide alone, again",
            "bare transport", "(door − guide) / bare", "the same, asked again", "p50 / p99 µs", "bare p50 / p99 µs",
        )  # fmt: skip
        print(f"\n| {' | '.join(heads)} |\n{'|---' * len(heads)}|", flush=True)
        for door in DOORS.values():
            await bench.run(door)
        print(f"\nAt most {MOST_RATIO} is wanted.\n\n| door | server CPU µs for a report with 20 links |\n|---|---|")
        await bench.reports()
        await asyncio.gather(*CLOSING)
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
        if given.bare:
            runner.run(DOORS[given.bare].bare(given.size, no_work))
        else:
            bus = NatsServer(Path(folder) / "nats", jetstream=False)
            os.environ[NATS] = bus.url
            try:
                runner.run(main(given, Path(folder)))
            finally:
                bus.stop()
