"""Asks and tells over HTTP: what the server spends on each, how long they take, how many are acknowledged a second."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from crawlguide.lab.speed.frontier import WARMING_S, ask_body, report_body, warming_body

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.lab.speed.frontier import Reporter
    from crawlguide.lab.speed.server import Server

CONNECTIONS, HOSTS = (1, 8, 64), 10_000


class Connection:
    """One kept-alive connection, as plain as can be: the client shares the machine with what it measures."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def to(cls, port: int) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def post(self, path: str, message: Any) -> bytes:
        return await self.send("POST", path, message)

    async def send(self, method: str, path: str, message: Any) -> bytes:
        body = msgspec.json.encode(message)
        head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        status, length = int(answer[9:12]), int(answer.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        body = await self._reader.readexactly(length)
        if status not in (200, 201):
            raise RuntimeError(f"{path}: {status} {body[:200]!r}")
        return body

    def close(self) -> None:
        self._writer.close()


async def assigned_urls(connection: Connection, name: str) -> list[str]:
    answer = msgspec.json.decode(await connection.post("/v1/next", ask_body(name)))
    return [one["url"] for one in answer["assigned_urls"]]


async def measure_over_http(
    server: Server, rounds: int, report: Reporter = report_body, hosts: int = HOSTS
) -> dict[str, Any]:
    """One connection, asks and then tells; then many at once, of pages on so many hosts."""
    connection = await Connection.to(server.port)
    answers: list[bytes] = []
    asks = await _timed(server, [(connection, "/v1/next", ask_body(f"h{n}")) for n in range(rounds)], answers)
    urls = [url for n in range(rounds // 10) for url in await assigned_urls(connection, f"u{n}")]
    urls += told_urls("told/alone", hosts, 1, rounds)  # where politeness leaves too few, pages that nobody was assigned
    told = [report([url], f"t{n}") for n, url in enumerate(urls[:rounds])]
    tells = await _timed(server, [(connection, "/v1/report", body) for body in told])
    connection.close()
    figures = {f"http_ask_{name}": value for name, value in asks.items()}
    figures["http_urls_per_ask"] = sum(map(urls_in, answers)) / rounds
    figures |= {f"http_tell_{name}": value for name, value in tells.items()}
    for many in CONNECTIONS:
        bodies = [report([url], f"{many}-{n}") for n, url in enumerate(told_urls(f"told/{many}", hosts, many, rounds))]
        figures[f"acks_per_s_{many}"] = await acks_per_second(server, many, bodies)
    return figures | {"http_ask_p99_us_while_tells_commit": await ask_p99_while_telling(server, rounds, report, hosts)}


async def warm_up(server: Server, asks: int) -> None:
    """Ask, so that what is read from the disk once is in memory; then wait until nothing of that is leased any more."""
    connection = await Connection.to(server.port)
    for number in range(asks):
        await connection.post("/v1/next", warming_body(f"warm-{number}"))
    connection.close()
    await asyncio.sleep(2 * WARMING_S)


def urls_in(answer: bytes) -> int:
    """How many URLs an ask was given, without decoding what it was told."""
    return answer.count(b'"lease_expires":')


async def _timed(
    server: Server, calls: Sequence[tuple[Connection, str, Any]], answers: list[bytes] | None = None
) -> dict[str, float]:
    """What each call costs and takes; their answers are added to `answers`."""
    kept = [] if answers is None else answers
    took, cpu = [], server.cpu_s()
    for connection, path, message in calls:
        began = time.perf_counter()
        kept.append(await connection.post(path, message))
        took.append((time.perf_counter() - began) * 1e6)
    spent = (server.cpu_s() - cpu) / len(calls) * 1e6
    return {"cpu_us": spent, "p50_us": float(np.median(took)), "p99_us": float(np.quantile(took, 0.99))}


def told_urls(path: str, hosts: int, many: int, rounds: int) -> list[str]:
    """Pages that nobody was assigned: enough for each connection."""
    return [f"https://h{n % hosts:05d}.example/{path}-{n}" for n in range(max(rounds, 5 * many))]


async def acks_per_second(server: Server, many: int, bodies: Sequence[dict[str, Any]]) -> float:
    """Durable acknowledgements of these reports a second over so many connections."""
    connections = [await Connection.to(server.port) for _ in range(many)]

    async def tell(number: int, connection: Connection) -> None:
        for body in bodies[number::many]:
            await connection.post("/v1/report", body)

    began = time.perf_counter()
    await asyncio.gather(*(tell(number, connection) for number, connection in enumerate(connections)))
    for connection in connections:
        connection.close()
    return len(bodies) / (time.perf_counter() - began)


async def ask_p99_while_telling(server: Server, rounds: int, report: Reporter, hosts: int) -> float:
    """The 99th percentile of asks while eight connections tell without pause."""
    stop = asyncio.Event()

    async def tells(number: int) -> None:
        connection, count = await Connection.to(server.port), 0
        while not stop.is_set():
            count += 1
            url = f"https://h{count % hosts:05d}.example/d/{number}-{count}"
            await connection.post("/v1/report", report([url], f"d{number}-{count}"))
        connection.close()

    running = [asyncio.create_task(tells(number)) for number in range(8)]
    connection, took = await Connection.to(server.port), []
    for n in range(rounds):
        began = time.perf_counter()
        await connection.post("/v1/next", ask_body(f"w{n}"))
        took.append((time.perf_counter() - began) * 1e6)
    stop.set()
    await asyncio.gather(*running)
    connection.close()
    return float(np.quantile(took, 0.99))
