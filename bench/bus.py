"""What does an ask over NATS cost beyond NATS itself and the guide's own time?

    .venv/bin/python -m bench.bus [--asks 2000] [--rounds 5]

One ask after the other, always the same, so that the guide's own time is the same, too. In turns: to the guide in this
process (read, answer, write), to a bare echo of an answer, to the least that answers over NATS (a callback around the
guide, without any check), and through the door. Client and guide share a process, the server is a real one. Two shares
are printed. Beyond the guide's own time the door may cost 1.3 times the bare echo; the least program costs more than
that, too, so the second share says what the door adds to it. Why the least costs more than echo and guide together was
not found.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import nats
import uvloop
from tests.gateway.bus.common import NatsServer, ask, config, opened

from crawlguide.core.config import BusOptions
from crawlguide.core.messages import AskMessage, SeedsMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway import wire

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

PREFIX, CRAWL, MOST = "bench", Crawl("default", "default"), 1.3


async def measured(asks: int, rounds: int, events: bool) -> dict[str, float]:
    """Medians of the rounds, in µs for one ask."""
    with tempfile.TemporaryDirectory() as folder:
        server = NatsServer(Path(folder) / "nats")
        try:
            settings = config(BusOptions(nats=server.url, prefix=PREFIX, events=events), Path(folder) / "data")
            async with opened(settings) as here:
                await _seed(here.guide)
                client, responder = await nats.connect(server.url), await nats.connect(server.url)
                ways = await _ways(client, responder, here.guide)
                found: dict[str, list[float]] = {name: [] for name in ways}
                for _ in range(rounds):
                    for name, way in ways.items():
                        found[name].append(await _timed(way, asks))
                await client.close()
                await responder.close()
        finally:
            server.stop()
    return {name: statistics.median(times) for name, times in found.items()}


async def _seed(guide: Any) -> None:
    urls: list[Any] = [f"https://h{number}.example/" for number in range(100)]
    await guide.seed(CRAWL, SeedsMessage(urls))


async def _ways(client: Any, responder: Any, guide: Any) -> dict[str, Callable[[], Awaitable[Any]]]:
    body = msgspec.json.encode(ask(request_id="the same", budget={"max_urls": 10}))
    answer = wire.encode(await guide.ask(wire.decode(body, AskMessage)))

    async def own() -> bytes:
        return wire.encode(await guide.ask(wire.decode(body, AskMessage)))

    async def echo(message: Any) -> None:
        await message.respond(answer)

    async def least(message: Any) -> None:
        await message.respond(wire.encode(await guide.ask(wire.decode(message.data, AskMessage))))

    await responder.subscribe("echo", cb=echo)
    await responder.subscribe("least", cb=least)
    await responder.flush()
    return {
        "own": own,
        "echo": lambda: client.request("echo", body, 10),
        "least": lambda: client.request("least", body, 10),
        "door": lambda: client.request(f"{PREFIX}.next", body, 10),
    }


async def _timed(way: Callable[[], Awaitable[Any]], number: int) -> float:
    times = []
    for _ in range(number):
        began = time.perf_counter()
        await way()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--asks", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    for events in (False, True):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            found = runner.run(measured(given.asks, given.rounds, events))
        beyond = {name: took - found["own"] for name, took in found.items()}
        print(
            f"an ask over NATS, events {'on' if events else 'off'}: {found['door']:.0f} µs; the guide itself"
            f" {found['own']:.0f} µs, an echo {found['echo']:.0f} µs, the least program {found['least']:.0f} µs."
            f" Beyond the guide, the door is {beyond['door'] / found['echo']:.2f} of an echo (wanted: {MOST}, the least"
            f" program: {beyond['least'] / found['echo']:.2f}), and {beyond['door'] / beyond['least']:.2f} of the least"
        )


if __name__ == "__main__":
    main()
