"""Does the server stay itself when far too much comes in?

    .venv/bin/python -m bench.overload [--seconds 60] [--times 5] [--idle 10000] [--slow 200]

1. The peak: how many reports a second are acknowledged when a few crawlers send as fast as they are answered. Then for
   `seconds` so many times as many, whether answered or not: goodput is what is acknowledged, beside the peak. Then a
   fifth of the peak: how soon is everything answered as before?
2. The p99 of a few crawlers alone, and beside idle connections and slow ones that send a byte of a head now and then.

Server and clients have a core each. Both numbers of a ratio come from one run.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import os
import resource
import tempfile
import time
from collections import deque
from pathlib import Path

import httpx
import msgspec
import numpy as np
import uvloop

from crawlguide.core.messages import VERSION
from crawlguide.lab.speed.frontier import POLICY
from crawlguide.lab.speed.server import Server, serving

LINKS, PAGES = 10, 1_000
CRAWLERS, LINES, OPENED_AT_ONCE = 32, 2_000, 100
FEW, FEW_PER_S = 8, 100.0
TICK_S, WINDOW_S = 0.01, 0.25
SLOW_BYTE_EVERY_S = 0.5
Answer = tuple[float, int, float]  # when it came, its status, how long it took


def report(number: int) -> bytes:
    links = [{"url": f"https://h{number % 97}.example/{number % PAGES}/{link}"} for link in range(LINKS)]
    fetch = {"url": f"https://h{number % 97}.example/{number % PAGES}", "status": 200, "outlinks": links}
    body = msgspec.json.encode({"mcp_version": VERSION, "crawler_id": "c", "crawl_id": "load", "fetches": [fetch]})
    head = (
        f"POST /v1/report HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    return head.encode() + b"\r\n\r\n" + body


REPORTS = [report(number) for number in range(PAGES)]


class Line(asyncio.Protocol):
    """One connection, as plain as can be: the client shares the machine with what it measures."""

    def __init__(self, load: Load) -> None:
        self._load, self._heard, self._began = load, b"", 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]

    def ask(self, body: bytes) -> None:
        self._began = time.perf_counter()
        self.transport.write(body)

    def data_received(self, data: bytes) -> None:
        self._heard += data
        head, end, body = self._heard.partition(b"\r\n\r\n")
        if end and len(body) >= int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]):
            self._heard, now = b"", time.perf_counter()
            self._load.answered(self, (now, int(head[9:12]), now - self._began))

    def connection_lost(self, _: Exception | None) -> None:
        self._load.cut += 1


class Load:
    """Lines that send reports, as fast as they are answered or at a rate."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.cut = self.unsent = 0
        self._lines: list[Line] = []
        self._free: deque[Line] = deque()
        self._hurried = False
        self._bodies = itertools.cycle(REPORTS)

    async def open(self, port: int, count: int) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(count):
            _, line = await loop.create_connection(lambda: Line(self), "127.0.0.1", port)
            self._lines.append(line)
            self._free.append(line)

    async def hurry(self, seconds: float) -> list[Answer]:
        """Every line asks again as soon as it is answered."""
        self.answers, self._hurried = [], True
        while self._free:
            self._free.popleft().ask(next(self._bodies))
        await asyncio.sleep(seconds)
        self._hurried = False
        return await self._settled()

    async def at(self, rate: float, seconds: float) -> list[Answer]:
        """So many a second; one that finds no free line is not sent."""
        self.answers, self.unsent = [], 0
        began, sent = time.perf_counter(), 0
        while (now := time.perf_counter() - began) < seconds:
            due = int(now * rate) - sent
            sent += due
            for _ in range(min(due, len(self._free))):
                due -= 1
                self._free.popleft().ask(next(self._bodies))
            self.unsent += due
            await asyncio.sleep(TICK_S)
        answers, self.answers = self.answers, []
        return answers

    async def _settled(self) -> list[Answer]:
        answers, self.answers = self.answers, []
        while len(self._free) < len(self._lines) - self.cut:  # noqa: ASYNC110 - nobody waits for anything else
            await asyncio.sleep(TICK_S)
        return answers

    def answered(self, line: Line, answer: Answer) -> None:
        self.answers.append(answer)
        if self._hurried:
            line.ask(next(self._bodies))
        else:
            self._free.append(line)

    def close(self) -> None:
        for line in self._lines:
            line.transport.abort()


def good(answers: list[Answer]) -> list[Answer]:
    return [answer for answer in answers if answer[1] == 200]


def p99_ms(answers: list[Answer]) -> float:
    return float(np.percentile([took for _, _, took in answers], 99)) * 1e3 if answers else float("nan")


async def overload(server: Server, seconds: float, times: float) -> None:
    some_s = max(2.0, seconds / 6)
    peak, usual, cost_ms = await at_its_best(server, some_s)
    many = Load()
    await many.open(server.port, LINES)
    used_s = server.cpu_s()
    answers = await many.at(times * peak, seconds)
    cpu_ms = (server.cpu_s() - used_s) / len(good(answers)) * 1e3
    recovered_s = await recovery_s(server, peak / 5, 3 * usual)
    show(answers, seconds, peak)
    print(f"CPU for one that is served: {cost_ms:.2f} ms at the peak, {cpu_ms:.2f} ms with refusals; cut {many.cut}")
    print(f"recovered after {recovered_s:.1f} s")
    many.close()


async def at_its_best(server: Server, seconds: float) -> tuple[float, float, float]:
    """Answers a second; p99 in milliseconds at a fifth of that; CPU time of one in milliseconds."""
    few = Load()
    await few.open(server.port, CRAWLERS)
    await few.hurry(1.0)
    used_s = server.cpu_s()
    count = len(good(await few.hurry(seconds)))
    cost_ms = (server.cpu_s() - used_s) / count * 1e3
    usual = p99_ms(await few.at(count / seconds / 5, seconds))
    few.close()
    return count / seconds, usual, cost_ms


def show(answers: list[Answer], seconds: float, peak: float) -> None:
    served, refused = good(answers), [answer for answer in answers if answer[1] == 503]
    goodput = len(served) / seconds
    print(f"peak {peak:,.0f}/s; then {len(answers) / seconds:,.0f}/s were answered, of these")
    print(f"served {goodput:,.0f}/s = {goodput / peak:.0%} of the peak, within {p99_ms(served):,.0f} ms (p99)")
    print(f"refused {len(refused) / seconds:,.0f}/s, within {p99_ms(refused):,.0f} ms (p99)")
    print(f"anything else: {len(answers) - len(served) - len(refused)}")


async def recovery_s(server: Server, rate: float, most_ms: float) -> float:
    """Until all of a quarter of a second are served about as fast as before the flood."""
    few, began = Load(), time.perf_counter()
    await few.open(server.port, CRAWLERS)
    while True:
        answers = await few.at(rate, WINDOW_S)
        if answers and len(good(answers)) == len(answers) and p99_ms(answers) <= max(most_ms, 50.0):
            few.close()
            return time.perf_counter() - began - WINDOW_S


async def crowd(server: Server, seconds: float, idle: int, slow: int) -> None:
    """Alone before and after: the machine may be busy with something else meanwhile."""
    before_ms, before_bytes = await usual_ms(server, seconds / 2), server.memory_bytes()
    lines = await opened(server.port, idle)
    trickles = [asyncio.create_task(trickle(server.port)) for _ in range(slow)]
    beside_ms, more_bytes = await usual_ms(server, seconds), server.memory_bytes() - before_bytes
    for task in trickles:
        task.cancel()
    await asyncio.gather(*trickles, return_exceptions=True)
    for writer in lines:
        writer.transport.abort()
    alone_ms = (before_ms + await usual_ms(server, seconds / 2)) / 2
    print(f"p99 alone {alone_ms:.1f} ms, beside {len(lines):,} idle and {slow} slow {beside_ms:.1f} ms", end=" ")
    print(f"= {beside_ms / alone_ms:.2f}x; {more_bytes / 1e6:.0f} MB more", flush=True)


async def usual_ms(server: Server, seconds: float) -> float:
    """The p99 of a few crawlers that do not hurry."""
    few = Load()
    await few.open(server.port, FEW)
    await few.at(FEW_PER_S, 1.0)
    p99 = p99_ms(await few.at(FEW_PER_S, seconds))
    few.close()
    return p99


async def opened(port: int, count: int) -> list[asyncio.StreamWriter]:
    writers: list[asyncio.StreamWriter] = []
    for first in range(0, count, OPENED_AT_ONCE):
        some = min(OPENED_AT_ONCE, count - first)
        lines = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", port) for _ in range(some)))
        writers += [writer for _, writer in lines]
    return writers


async def trickle(port: int) -> None:
    """A head that does not end, a byte at a time; cut, it comes again."""
    while True:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(b"GET /v1/stats HTTP/1.1\r\nX-Slow: ")
            while not writer.is_closing():
                writer.write(b"a")
                await writer.drain()
                await asyncio.sleep(SLOW_BYTE_EVERY_S)
        except ConnectionError:
            pass
        finally:
            writer.transport.abort()


async def measure(server: Server, given: argparse.Namespace) -> None:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", trust_env=False) as client:
        (await client.put("/v1/crawls/load", json=POLICY)).raise_for_status()
    await crowd(server, min(20.0, given.seconds), given.idle, given.slow)
    await overload(server, given.seconds, given.times)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--times", type=float, default=5.0)
    parser.add_argument("--idle", type=int, default=10_000)
    parser.add_argument("--slow", type=int, default=200)
    given = parser.parse_args()
    gc.disable()  # ten thousand lines take long to look at
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder, serving(Path(":memory:"), Path(folder)) as server:
        os.sched_setaffinity(server.process.pid, cores[:1])
        for task in Path(f"/proc/{server.process.pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), cores[:1])
        os.sched_setaffinity(0, cores[-1:])
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(measure(server, given))


if __name__ == "__main__":
    main()
