"""How many URLs a second go in and out through the door for clients of URLFrontier?

    .venv/bin/python -m bench.urlfrontier [--urls 50000] [--hosts 5000] [--rounds 3] [--metadata]

The way the original service was measured: URLs over many hosts put in by PutDiscovered in batches of 100 (and by
PutURLs, one by one), then taken by GetURLs from 10 queues, 10 of each, and put back as done by PutURLs on one stream.
A server with a data folder in a process of its own: what is acknowledged is on the disk. The client is in another one.
Queues have no delay: what is measured is the door. Wall time, and CPU time of the server for a URL. Beside it the same
client with a server in Python that does nothing: what gRPC itself takes, on both sides.
"""

from __future__ import annotations

import argparse
import queue
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc
import grpc.aio
import uvloop
from grpc.experimental import ChannelOptions

from crawlguide.gateway.urlfrontier import urlfrontier_pb2 as wire
from crawlguide.gateway.urlfrontier.urlfrontier_pb2_grpc import URLFrontierStub
from crawlguide.lab.speed.server import Server, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

BATCH, QUEUES, PER_QUEUE = 100, 10, 10
OPTIONS = [(ChannelOptions.SingleThreadedUnaryStream, 1)]  # what the client itself costs
REFERENCE = "the Java service in memory on such a machine: 153,000 and 5,400 URLs/s in, 3,300 to 4,000 out"


class Speed(NamedTuple):
    """URLs a second, and µs of the server's CPU for one of them."""

    per_s: float
    cpu_us: float

    def __str__(self) -> str:
        return f"{self.per_s:8,.0f} URLs/s, {self.cpu_us:4.0f} µs CPU of the server for a URL"


class Meter:
    """What a stretch of work took."""

    def __init__(self, server: Server) -> None:
        self._server, self._began, self._cpu = server, time.perf_counter(), server.cpu_s()

    def speed(self, urls: int) -> Speed:
        took = time.perf_counter() - self._began
        return Speed(urls / took, (self._server.cpu_s() - self._cpu) / urls * 1e6)


def infos(options: argparse.Namespace, crawl: str) -> Iterator[wire.URLInfo]:
    about = {"depth": wire.StringList(values=["1"])} if options.metadata else {}
    for number in range(options.urls):
        host, page = number % options.hosts, number // options.hosts
        url = f"http://host{host:05d}.example/path/{page}/page-{number}.html"
        yield wire.URLInfo(url=url, key=f"host{host:05d}.example", crawlID=crawl, metadata=about)


def put_in_batches(stub: URLFrontierStub, options: argparse.Namespace, crawl: str) -> None:
    def batches() -> Iterator[wire.DiscoveredBatch]:
        some: list[wire.URLInfo] = []
        for info in infos(options, crawl):
            some.append(info)
            if len(some) == BATCH:
                yield wire.DiscoveredBatch(items=some)
                some = []

    good = sum(list(ack.statuses).count(wire.AckMessage.OK) for ack in stub.PutDiscovered(batches()))
    check(good, options.urls // BATCH * BATCH)


def put_one_by_one(stub: URLFrontierStub, options: argparse.Namespace, crawl: str) -> None:
    items = (wire.URLItem(discovered=wire.DiscoveredURLItem(info=info)) for info in infos(options, crawl))
    check(sum(ack.status == wire.AckMessage.OK for ack in stub.PutURLs(items)), options.urls)


def take_out(stub: URLFrontierStub, crawl: str) -> int:
    """Until nothing is left; every URL is acknowledged before more are taken."""
    sending: queue.SimpleQueue[wire.URLItem | None] = queue.SimpleQueue()
    acks = stub.PutURLs(iter(sending.get, None))
    wanted = wire.GetParams(max_urls_per_queue=PER_QUEUE, max_queues=QUEUES, delay_requestable=600, crawlID=crawl)
    taken = 0
    while found := list(stub.GetURLs(wanted)):
        for info in found:
            sending.put(wire.URLItem(known=wire.KnownURLItem(info=info)))
        check(sum(next(acks).status == wire.AckMessage.OK for _ in found), len(found))
        taken += len(found)
    sending.put(None)
    check(len(list(acks)), 0)
    return taken


def check(found: int, wanted: int) -> None:
    if found != wanted:
        raise RuntimeError(f"expected {wanted} acknowledgements, got {found}")


def one_round(server: Server, stub: URLFrontierStub, options: argparse.Namespace, name: str) -> None:
    stub.SetDelay(wire.QueueDelayParams(delay_requestable=0))
    meter = Meter(server)
    put_in_batches(stub, options, name)
    print(f"PutDiscovered, {BATCH} a batch:   {meter.speed(options.urls // BATCH * BATCH)}", flush=True)
    meter = Meter(server)
    taken = take_out(stub, name)
    check(taken, options.urls // BATCH * BATCH)
    print(f"GetURLs {QUEUES}x{PER_QUEUE} + PutURLs(done): {meter.speed(taken)}", flush=True)
    meter = Meter(server)
    put_one_by_one(stub, options, f"{name}-one")
    print(f"PutURLs, one by one:         {meter.speed(options.urls)}", flush=True)


class Nothing:
    """gRPC alone: so many times the same URLs, and an acknowledgement for whatever comes."""

    def __init__(self, urls: int) -> None:
        count = QUEUES * PER_QUEUE
        self._infos = list(infos(argparse.Namespace(urls=count, hosts=QUEUES, metadata=False), "x"))
        self._left = urls // count

    async def get(self, _: object, context: Any) -> None:
        self._left -= 1
        for info in self._infos if self._left >= 0 else ():
            await context.write(info)

    async def put(self, _: object, context: Any) -> None:
        while (item := await context.read()) is not grpc.aio.EOF:
            await context.write(wire.AckMessage(ID=item.known.info.url))


async def serve_nothing(urls: int) -> None:
    nothing, server = Nothing(urls), grpc.aio.server()
    send = wire.AckMessage.SerializeToString, wire.URLInfo.SerializeToString
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        "GetURLs": grpc.unary_stream_rpc_method_handler(nothing.get, wire.GetParams.FromString, send[1]),
        "PutURLs": grpc.stream_stream_rpc_method_handler(nothing.put, wire.URLItem.FromString, send[0]),
    }
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("urlfrontier.URLFrontier", handlers)])
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await server.wait_for_termination()


def bare(urls: int) -> Speed:
    """The same client with a server in Python that does nothing."""
    command = [sys.executable, "-m", "bench.urlfrontier", "--serve-nothing", str(urls)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            with grpc.insecure_channel(f"127.0.0.1:{port}", OPTIONS) as channel:
                meter = Meter(Server(process, port, 0.0, 0.0, {}))  # type: ignore[arg-type]  # its text is not read
                return meter.speed(take_out(URLFrontierStub(channel), "x"))
        finally:
            process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urls", type=int, default=50_000)
    parser.add_argument("--hosts", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--metadata", action="store_true", help="every URL has some")
    parser.add_argument("--serve-nothing", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve_nothing:
        uvloop.run(serve_nothing(options.serve_nothing))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with (
            serving(folder / "data", folder, "--frontier-port", "0") as server,
            grpc.insecure_channel(f"127.0.0.1:{server.ready['frontier_port']}", OPTIONS) as channel,
        ):
            for number in range(options.rounds):
                one_round(server, URLFrontierStub(channel), options, f"round-{number}")
                print(f"the same, doing nothing:     {bare(min(options.urls, 10_000))}", flush=True)
    print(f"beside it, {REFERENCE}")


if __name__ == "__main__":
    main()
