"""Sixteen crawlers: each asks, starts every fetch within 20 ms of its `not_before`, tells, and asks again.

Each start is noted with how late it was and how long its answer was on the way: a crawler that this machine kept
waiting breaks a gap by as much, and that says nothing about the guide.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any, NamedTuple

import httpx

from tests.politeness import web

VERSION = "2025-11"
LATE_S = 0.02  # so late does a crawler start at most
HELD = 16  # URLs that a crawler has in hand; with fewer it asks
AT_ONCE = 8
AGAIN_AFTER_S, IDLE_S = 0.1, 0.02
LEASE_MS = 10_000


class Start(NamedTuple):
    """How a fetch began: so long after its `not_before`, which was counted from an answer so long on its way."""

    late_s: float
    answered_s: float


@dataclass
class Fleet:
    """All crawlers, and what they know of their starts, by URL."""

    port: int
    crawl: str
    ends: float
    crawlers: int = 16
    starts: dict[str, Start] = field(default_factory=dict)
    refused: int = 0

    async def work(self) -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", timeout=10, trust_env=False) as http:
            crawlers = [Crawler(self, http, f"c-{number}", Random(number)) for number in range(self.crawlers)]
            await asyncio.gather(*(crawler.work() for crawler in crawlers))


@dataclass
class Crawler:
    fleet: Fleet
    http: httpx.AsyncClient
    name: str
    chance: Random
    held: set[asyncio.Task[None]] = field(default_factory=set)
    told: list[dict[str, Any]] = field(default_factory=list)
    sent: float = 0.0  # when the newest call went out

    async def work(self) -> None:
        while time.monotonic() < self.fleet.ends:
            if self.told:
                await self.tell()
            wait_s = await self.ask() if len(self.held) < HELD else IDLE_S
            await asyncio.sleep(wait_s)
        await asyncio.gather(*self.held, return_exceptions=True)

    async def ask(self) -> float:
        """Take what there is; returns how long to wait before anything else."""
        answer = await self.call("/v1/next", {"budget": {"max_urls": AT_ONCE, "timeout_ms": LEASE_MS}})
        received = time.monotonic()
        for given in answer.get("assigned_urls", ()):
            not_before = received + given["not_before_ms"] / 1_000
            task = asyncio.create_task(self.fetch(given["url"], not_before, received - self.sent))
            self.held.add(task)
            task.add_done_callback(self.held.discard)
        return float(min(max(answer.get("retry_after_ms", 0) / 1_000, IDLE_S), 0.1))

    async def fetch(self, url: str, not_before: float, answered_s: float) -> None:
        await asyncio.sleep(max(0.0, not_before + LATE_S / 2 * self.chance.random() - time.monotonic()))
        if time.monotonic() > self.fleet.ends:
            return
        began, address = time.monotonic(), httpx.URL(url)
        reader, writer = await asyncio.open_connection(address.host, address.port)
        self.fleet.starts[url] = Start(time.monotonic() - not_before, answered_s)
        writer.write(f"GET {address.path} HTTP/1.1\r\nHost: {address.host}\r\n\r\n".encode())
        page = (await reader.read()).partition(b"\r\n\r\n")[2]
        writer.close()
        instant = datetime.now(UTC).isoformat()
        said = {"url": url, "status": 200, "elapsed_ms": (time.monotonic() - began) * 1_000, "fetch_time": instant}
        links = [{"url": link, "anchor": web.title(link)} for link in web.links(address.path)]
        self.told.append(said | {"bytes": len(page), "title": page.decode(), "outlinks": links})

    async def tell(self) -> None:
        told, self.told = self.told, []
        await self.call("/v1/report", {"fetches": told})

    async def call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Until it is answered: a guide that was killed comes back."""
        message = {"mcp_version": VERSION, "crawler_id": self.name, "crawl_id": self.fleet.crawl, **body}
        while True:
            try:
                self.sent = time.monotonic()
                answer = await self.http.post(path, json=message)
            except httpx.TransportError:
                self.fleet.refused += 1
            else:
                answer.raise_for_status()
                return dict(answer.json())
            if time.monotonic() > self.fleet.ends:
                return {}
            await asyncio.sleep(AGAIN_AFTER_S)
