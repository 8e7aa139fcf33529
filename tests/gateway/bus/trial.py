"""A bus that is stopped under load: nothing is lost, nothing is doubled. `make bus` runs it for 30 seconds.

Crawlers put asks and reports into the queue of a real NATS server and tell through the guide itself, while the server
is killed and started again. In the end every message has one answer, every report counts once, and every fetch that
was told is in exactly one event.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nats
from tests.gateway.bus.common import NatsCrawler, NatsServer, Opened, ask, config, opened, report, until

from crawlguide.core.config import BusOptions
from crawlguide.core.messages import ReportMessage
from crawlguide.gateway import wire

PREFIX, EVERY_S = "trial", 0.01


@dataclass
class Trial:
    """What was sent, and what came of it."""

    put: set[str] = field(default_factory=set)  # ids of messages that the bus has taken
    told: int = 0  # beside the bus
    told_away: int = 0  # of these, while it was away
    answers: Counter[str] = field(default_factory=Counter)  # by id
    events: Counter[str] = field(default_factory=Counter)  # of fetches, by URL
    taken: int = 0  # fetches that the guide counts
    caught_up_s: float = 0.0

    def verdict(self) -> list[str]:
        """What is wrong."""
        wrong = [f"no answer to {name}" for name in self.put - self.answers.keys()]
        wrong += [f"{number} answers to {name}" for name, number in self.answers.items() if number > 1]
        reports = sum(name.startswith("report") for name in self.put)
        if self.taken != reports + self.told:
            wrong.append(f"{reports + self.told} reports, and {self.taken} fetches counted")
        if len(self.events) != self.taken or set(self.events.values()) - {1}:
            doubled = sum(number > 1 for number in self.events.values())
            wrong.append(f"{self.taken} fetches, and events of {len(self.events)}, {doubled} of them doubled")
        return wrong


async def run(folder: Path, seconds: float, away_s: float) -> Trial:
    """`seconds` of load, in the middle of which the server is away."""
    server, trial = NatsServer(folder / "nats"), Trial()
    settings = config(BusOptions(nats=server.url, prefix=PREFIX, redeliver_s=2.0), folder / "data")
    try:
        async with opened(settings) as here:
            ended = asyncio.Event()
            loads = [asyncio.create_task(one(here, server, trial, ended)) for one in (_putting, _telling)]
            await asyncio.sleep((seconds - away_s) / 2)
            server.stop(signal.SIGKILL)
            await asyncio.sleep(away_s)
            await asyncio.to_thread(server.start)
            await asyncio.sleep((seconds - away_s) / 2)
            ended.set()
            await asyncio.gather(*loads)
            await _caught_up(here, server, trial)
    finally:
        server.stop()
    return trial


async def _putting(_: Opened, server: NatsServer, trial: Trial, ended: asyncio.Event) -> None:
    """Into the queue. What the bus did not acknowledge is put again, under the same id."""
    client = await nats.connect(server.url, max_reconnect_attempts=-1, reconnect_time_wait=0.1, error_cb=_quiet)
    crawler, number = NatsCrawler(client, PREFIX), 0
    while not ended.is_set():
        number += 1
        verb = "report" if number % 2 else "next"
        name = f"{verb}-{number}"
        message = report(f"https://q.example/{number}", report_id=name) if number % 2 else ask(request_id=name)
        body, subject = json.dumps(message).encode(), f"{PREFIX}.queue.{verb}"
        while True:
            try:
                await crawler.stream.publish(subject, body, timeout=1, headers={"Nats-Msg-Id": name})
                break
            except (nats.errors.Error, TimeoutError):
                await asyncio.sleep(0.1)
        trial.put.add(name)
        await asyncio.sleep(EVERY_S)
    await client.close()


async def _telling(here: Opened, _: NatsServer, trial: Trial, ended: asyncio.Event) -> None:
    """Beside the bus, which may be away."""
    while not ended.is_set():
        message = wire.convert(report(f"https://d.example/{trial.told}"), ReportMessage)
        await here.guide.tell(message)
        trial.told += 1
        trial.told_away += here.door.buses[0].is_away
        await asyncio.sleep(EVERY_S)


async def _caught_up(here: Opened, server: NatsServer, trial: Trial) -> None:
    began = time.monotonic()
    client = await nats.connect(server.url)
    crawler = NatsCrawler(client, PREFIX)

    async def is_empty() -> bool:
        info = await crawler.stream.stream_info(f"{PREFIX}-queue")
        return not info.state.messages and not here.door.buses[0].spool.waiting

    await until(is_empty, 60.0)
    trial.caught_up_s = time.monotonic() - began
    trial.answers.update(message.headers["request-id"] for message in await crawler.all_of("answers.>"))  # type: ignore[index]
    for event in await crawler.bodies("events.default.fetches"):
        trial.events.update(fetch["url"] for fetch in event["fetches"])
    trial.taken = (await here.guide.stats()).crawls["default"].fetches
    await client.close()


async def _quiet(_: Any) -> None:
    pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--away", type=float, default=30.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trial = asyncio.run(run(Path(folder), given.seconds, given.away))
    wrong = trial.verdict()
    print(  # noqa: T201
        f"NATS away for {given.away:g} of {given.seconds:g} s: {len(trial.put)} messages put, {trial.told} reports"
        f" beside ({trial.told_away} while it was away); {sum(trial.answers.values())} answers, events of"
        f" {sum(trial.events.values())} fetches, all there {trial.caught_up_s:.1f} s after the load;"
        f" {len(wrong)} lost or doubled"
    )
    if wrong:
        raise SystemExit("\n".join(wrong[:20]))


if __name__ == "__main__":
    main()
