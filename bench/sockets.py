"""What does an ask over a WebSocket cost the server more than an ask in process?

    .venv/bin/python bench/sockets.py [--urls 200000] [--idle 1000] [--busy 50] [--rounds 10] [--asks 200]

CPU time of all threads, server and in-process guide in turns, with the clients all on one core: on two they might be
two halves of one, and slow each other down. Medians of the rounds. Both guides are in memory and were filled alike.
Beside it: what JSON alone adds (the library takes and gives messages, a socket bytes), what HTTP adds, a ping, and the
same for an ask that is answered from what is stored. The difference of two large numbers is a rough one on a machine
that others use, and a guide whose caches the kernel has emptied is slower by itself; asking again shows the door alone.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import statistics
import tempfile
import time
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import numpy as np
import uvloop

from crawlguide.core.config import Config
from crawlguide.core.definition import Definition
from crawlguide.core.messages import AskMessage, SeedMessage, SeedsMessage
from crawlguide.gateway import wire
from crawlguide.gateway.opening import open_guide
from crawlguide.lab.speed import over_http
from crawlguide.lab.speed.frontier import CRAWL, FILLED_AT_ONCE, POLICY, ask_body, waiting_links
from crawlguide.lab.speed.over_socket import Socket
from crawlguide.lab.speed.server import Server, serving

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from crawlguide.guide.local import LocalGuide

HOSTS = 50_000
Kind = tuple[int, bool]  # how many URLs are asked for, and whether as the first time or again under the same id
KINDS = ((30, False), (1, False), (30, True), (1, True))
NAMES = count()


class Line:
    """One socket, and what is said over it here."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self.close = socket.close

    @classmethod
    async def to(cls, port: int) -> Line:
        return cls(await Socket.to(port))

    async def ask(self, kind: Kind) -> None:
        answer = await self._socket.call(msgspec.json.encode({"type": "next", "id": 1} | asked_for(kind)))
        if not answer.startswith(b'{"type":"next","id":1,"assigned_urls":[{'):
            raise RuntimeError(f"nothing to measure: {answer[:200]!r}")

    async def ping(self) -> None:
        await self._socket.call(b'{"type":"ping","id":1}')


def asked_for(kind: Kind) -> dict[str, Any]:
    urls, again = kind
    return ask_body(f"again-{urls}" if again else f"q{next(NAMES)}") | {"budget": {"max_urls": urls}}


async def in_process(guide: LocalGuide, kind: Kind, asks: int) -> float:
    """µs for an ask."""
    questions = [msgspec.convert(asked_for(kind), AskMessage) for _ in range(asks)]
    began = time.process_time_ns()
    for message in questions:
        if not (await guide.ask(message)).assigned_urls:
            raise RuntimeError("nothing to measure: no URLs")
    return (time.process_time_ns() - began) / asks / 1e3


async def with_json(guide: LocalGuide, kind: Kind, asks: int) -> float:
    """µs for an ask, from bytes to bytes."""
    bodies = [msgspec.json.encode(asked_for(kind)) for _ in range(asks)]
    began = time.process_time_ns()
    for body in bodies:
        wire.encode(await guide.ask(wire.decode(body, AskMessage)))
    return (time.process_time_ns() - began) / asks / 1e3


async def served(server: Server, steps: Sequence[Callable[[], Awaitable[Any]]], asks: int) -> float:
    """µs of the server for one of so many steps, taken by all lines at once."""
    each = asks // len(steps)

    async def talk(step: Callable[[], Awaitable[Any]]) -> None:
        for _ in range(each):
            await step()

    began = server.cpu_ns()
    await asyncio.gather(*(talk(step) for step in steps))
    return (server.cpu_ns() - began) / each / len(steps) / 1e3


async def measured(guide: LocalGuide, server: Server, options: argparse.Namespace) -> None:
    empty = server.memory_bytes()
    idle = [await Line.to(server.port) for _ in range(options.idle)]
    weight = (server.memory_bytes() - empty) / max(1, options.idle)
    lines = [await Line.to(server.port) for _ in range(options.busy)]
    plain = [await over_http.Connection.to(server.port) for _ in range(options.busy)]
    print(f"{options.idle} idle sockets: {weight / 1024:.1f} KiB each; {await resting(server):.2%} of a core at rest")
    for kind in KINDS:
        rounds = [await one_round(guide, server, (lines, plain), kind, options.asks)]  # to warm up
        rounds = [await one_round(guide, server, (lines, plain), kind, options.asks) for _ in range(options.rounds)]
        say(kind, rounds)
    pings = [await served(server, [line.ping for line in lines], 4 * options.asks) for _ in range(options.rounds)]
    print(f"a ping over a socket: {shown(pings)}")
    for line in (*idle, *lines):
        line.close()
    for connection in plain:
        connection.close()


async def one_round(
    guide: LocalGuide, server: Server, lines: tuple[list[Line], list[over_http.Connection]], kind: Kind, asks: int
) -> tuple[float, ...]:
    """µs for an ask in each way, one after the other, so that all have the same weather."""
    sockets = [partial(line.ask, kind) for line in lines[0]]
    plain = [partial(posted, line, kind) for line in lines[1]]
    return (
        await in_process(guide, kind, asks),
        await with_json(guide, kind, asks),
        await served(server, sockets, asks),
        await served(server, plain, asks),
    )


async def posted(line: over_http.Connection, kind: Kind) -> None:
    await line.post("/v1/next", asked_for(kind))


async def resting(server: Server) -> float:
    """The share of a core that open sockets take while nobody says anything."""
    began, cpu = time.monotonic(), server.cpu_ns()
    await asyncio.sleep(3)
    return (server.cpu_ns() - cpu) / 1e9 / (time.monotonic() - began)


def say(kind: Kind, rounds: list[tuple[float, ...]]) -> None:
    base = [spent[0] for spent in rounds]
    urls, again = kind
    print(f"an ask for {urls} URLs{' again, so that the stored answer is given,' * again} in process: {shown(base)}")
    for column, name in enumerate(("with JSON", "over a socket", "over HTTP"), 1):
        more = [spent[column] - spent[0] for spent in rounds]
        print(f"  {name}: {statistics.median(spent[column] for spent in rounds):.0f}, more by {shown(more)}")


def shown(spent: list[float]) -> str:
    low, middle, high = statistics.quantiles(spent, n=4)
    return f"{middle:.0f} µs CPU (half of the rounds {low:.0f} to {high:.0f})"


def filling(urls: int) -> Iterator[SeedsMessage]:
    """Seeds with the hosts and priorities of the frontier that is measured elsewhere."""
    chance = np.random.default_rng(0)
    for first in range(0, urls, FILLED_AT_ONCE):
        found = waiting_links(first, min(FILLED_AT_ONCE, urls - first), HOSTS, chance)
        pairs = zip(found.url.tolist(), found.manual_priority.tolist(), strict=True)
        yield SeedsMessage([SeedMessage(url, priority) for url, priority in pairs])


async def fill(guide: LocalGuide, server: Server, urls: int) -> None:
    crawl = f"http://127.0.0.1:{server.port}/v1/crawls/{CRAWL.name}"
    async with httpx.AsyncClient(trust_env=False, timeout=60) as door:
        (await door.put(crawl, json=POLICY)).raise_for_status()
        await guide.define(CRAWL, msgspec.convert(POLICY, Definition))
        for seeds in filling(urls):
            (await door.post(f"{crawl}/seeds", content=msgspec.json.encode(seeds))).raise_for_status()
            await guide.seed(CRAWL, seeds)


async def main(options: argparse.Namespace, scratch: Path) -> None:
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # the server inherits it
    guide = open_guide(":memory:", Config())
    with serving(Path(":memory:"), scratch) as server:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))  # no client pushes the server aside to read answers
        await fill(guide, server, options.urls)
        gc.collect()
        gc.freeze()
        await measured(guide, server, options)
    await guide.close()
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--urls", type=int, default=200_000)
    words.add_argument("--idle", type=int, default=1_000)
    words.add_argument("--busy", type=int, default=50)
    words.add_argument("--rounds", type=int, default=10)
    words.add_argument("--asks", type=int, default=200)
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(words.parse_args(), Path(folder)))
