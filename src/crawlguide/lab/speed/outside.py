"""Asks and tells over HTTP: what the server spends on each, how long they take, how many are acknowledged a second."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from crawlguide.lab.speed.frontier import question, story

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.lab.speed.run import Server

CONNECTIONS = (1, 8, 64)


class Line:
    """One kept-alive connection, as plain as can be: the client shares the machine with what it measures."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def to(cls, port: int) -> Line:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def post(self, path: str, message: Any) -> bytes:
        body = msgspec.json.encode(message)
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        status, length = int(answer[9:12]), int(answer.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        body = await self._reader.readexactly(length)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {body[:200]!r}")
        return body

    def close(self) -> None:
        self._writer.close()


async def asked(line: Line, name: str) -> list[str]:
    answer = msgspec.json.decode(await line.post("/v1/next", question(name)))
    return [given["url"] for given in answer["assigned_urls"]]


async def measured(server: Server, rounds: int) -> dict[str, Any]:
    """One connection, an ask and a tell in turn; then many at once."""
    line = await Line.to(server.port)
    asks = await _timed(server, [(line, "/v1/next", question(f"h{n}")) for n in range(rounds)])
    urls = [url for n in range(rounds // 10) for url in await asked(line, f"u{n}")]
    tells = await _timed(server, [(line, "/v1/report", story([urls[n]], f"t{n}")) for n in range(rounds)])
    line.close()
    found = {f"http_ask_{name}": value for name, value in asks.items()}
    found |= {f"http_tell_{name}": value for name, value in tells.items()}
    for many in CONNECTIONS:
        found[f"acks_per_s_{many}"] = await acknowledged(server, many, max(rounds, 5 * many))
    return found | {"http_ask_p99_us_while_tells_commit": await disturbed(server, rounds)}


async def _timed(server: Server, calls: Sequence[tuple[Line, str, Any]]) -> dict[str, float]:
    took, cpu = [], server.cpu_s()
    for line, path, message in calls:
        began = time.perf_counter()
        await line.post(path, message)
        took.append((time.perf_counter() - began) * 1e6)
    spent = (server.cpu_s() - cpu) / len(calls) * 1e6
    return {"cpu_us": spent, "p50_us": float(np.median(took)), "p99_us": float(np.quantile(took, 0.99))}


async def acknowledged(server: Server, many: int, count: int) -> float:
    """Durable acknowledgements a second over so many connections."""
    lines = [await Line.to(server.port) for _ in range(many)]

    async def tell(number: int, line: Line) -> None:
        for n in range(number, count, many):
            await line.post("/v1/report", story([f"https://h{n % 10_000:05d}.example/told/{many}-{n}"], f"{many}-{n}"))

    began = time.perf_counter()
    await asyncio.gather(*(tell(number, line) for number, line in enumerate(lines)))
    for line in lines:
        line.close()
    return count / (time.perf_counter() - began)


async def disturbed(server: Server, rounds: int) -> float:
    """The 99th percentile of asks while eight connections tell without pause."""
    stop = asyncio.Event()

    async def tells(number: int) -> None:
        line, count = await Line.to(server.port), 0
        while not stop.is_set():
            count += 1
            await line.post(
                "/v1/report", story([f"https://h{count:05d}.example/d/{number}-{count}"], f"d{number}-{count}")
            )
        line.close()

    running = [asyncio.create_task(tells(number)) for number in range(8)]
    line, took = await Line.to(server.port), []
    for n in range(rounds):
        began = time.perf_counter()
        await line.post("/v1/next", question(f"w{n}"))
        took.append((time.perf_counter() - began) * 1e6)
    stop.set()
    await asyncio.gather(*running)
    line.close()
    return float(np.quantile(took, 0.99))
