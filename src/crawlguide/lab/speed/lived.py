"""A crawl that grows as crawls do: a crawler asks a server over HTTP, fetches from a made-up web, and tells.

While it grows the server's CPU is counted apart for asks and tells, all threads and everything in the background
included, and its memory is read at some sizes: the cost and the weight of a link with all that a guide learns from it.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.lab.speed.frontier import CRAWL, ask_body
from crawlguide.lab.speed.lived_web import DEFINITION, LivedWeb
from crawlguide.lab.speed.over_http import Connection
from crawlguide.lab.speed.reference import reference_us

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from crawlguide.lab.speed.server import Server

ASKS_IN_A_ROW, PAGES_TOLD, REFERENCE_TURNS = 10, 10, 3
URLS_OF_AN_ASK = 450  # about so many new ones are found by what one ask gave
FILES_TOLD = 100  # robots.txt
SEEDS_PER_HOST = 0.1  # the other hosts are found by links
COUNTED_BEFORE = 100_000  # so many URLs before a point the asks and tells are counted, or the last half
LONGEST_WAIT_S, EMPTY_AT_MOST = 1.0, 60
SAY_EVERY_S = 15.0


@dataclass
class Counted:
    """What the server spent on the way to one size."""

    ask_ns: int = 0
    tell_ns: int = 0
    asks: int = 0
    urls: int = 0  # assigned
    pages: int = 0
    links: int = 0  # told, known ones included
    new: int = 0  # of them
    reference_us: list[float] = field(default_factory=list)

    def figures(self) -> dict[str, float]:
        ask, link, reference = self.ask_ns / self.asks / 1e3, self.tell_ns / self.links / 1e3, median(self.reference_us)
        return {
            "ask_cpu_us": ask,
            "link_cpu_us": link,
            "new_link_cpu_us": self.tell_ns / max(1, self.new) / 1e3,
            "reference_us": reference,
            "ask_to_reference": ask / reference,
            "link_to_reference": link / reference,
            "urls_per_ask": self.urls / self.asks,
            "new_links_per_page": self.new / self.pages,
        }


class Growth:
    """One crawl on one server, and the web it grows on."""

    def __init__(self, server: Server, hosts: int, say: Callable[[str], None]) -> None:
        self._server, self._hosts, self._say = server, hosts, say
        self.web = LivedWeb(hosts)
        self.urls = 0
        self._begun, self._number, self._said = False, 0, time.monotonic()
        self._first = (0, server.resident_bytes())  # URLs and memory when empty; then at the first point

    def reach(self, size: int) -> dict[str, Any]:
        """Grow to so many URLs; what asks, links and memory cost there."""
        counted = asyncio.run(self._reach(size))
        resident = self._server.resident_bytes()
        first_urls, first_bytes = self._first
        weight = (resident - first_bytes) / (self.urls - first_urls)
        if first_urls == 0:
            self._first = (self.urls, resident)
        return {"urls": self.urls, "resident_bytes": resident, "resident_bytes_per_url": weight} | counted.figures()

    def copy(self, folder: Path) -> None:
        """The server's folder as it is now, in a folder of its own, while the crawl stands still."""
        made = asyncio.run(self._backup())
        shutil.move(made, folder)

    async def _reach(self, size: int) -> Counted:
        connection = await Connection.to(self._server.port)
        if not self._begun:
            await self._begin(connection)
        counted = Counted()
        while self.urls < size or not counted.links:
            if size - self.urls > min(COUNTED_BEFORE, size // 2):
                counted = Counted()
            await self._block(connection, counted, min(ASKS_IN_A_ROW, (size - self.urls) // URLS_OF_AN_ASK + 1))
            self._say_now_and_then(size)
        connection.close()
        return counted

    async def _begin(self, connection: Connection) -> None:
        self._begun = True
        path = f"/v1/crawls/{CRAWL.name}"
        await connection.send("PUT", path, DEFINITION)
        files = self.web.robots_files()
        for first in range(0, len(files), FILES_TOLD):
            await connection.post("/v1/report", self._report(files[first : first + FILES_TOLD]))
        seeds = self.web.seeds(max(1, round(self._hosts * SEEDS_PER_HOST)))
        added = msgspec.json.decode(await connection.post(f"{path}/seeds", {"urls": seeds}))
        self.urls += added["discovered"]

    async def _block(self, connection: Connection, counted: Counted, asks: int) -> None:
        """Some asks in a row, then all that they gave is told: so the two can be counted apart."""
        counted.reference_us.append(reference_us(REFERENCE_TURNS))
        given = await self._asked(connection, counted, max(1, asks))
        bodies = [self._report(given[first : first + PAGES_TOLD]) for first in range(0, len(given), PAGES_TOLD)]
        began = self._server.cpu_ns()
        answers = [await connection.post("/v1/report", body) for body in bodies]
        counted.tell_ns += self._server.cpu_ns() - began
        new = sum(msgspec.json.decode(answer)["discovered"] for answer in answers)
        self.urls += new
        counted.new += new
        counted.pages += sum("outlinks" in fetch for body in bodies for fetch in body["fetches"])
        counted.links += sum(len(fetch.get("outlinks", ())) for body in bodies for fetch in body["fetches"])

    async def _asked(self, connection: Connection, counted: Counted, asks: int) -> list[str]:
        """URLs to fetch. Where politeness leaves none it waits; such asks are not counted."""
        for _ in range(EMPTY_AT_MOST):
            bodies = [ask_body(self._name()) for _ in range(asks)]
            began = self._server.cpu_ns()
            answers = [await connection.post("/v1/next", body) for body in bodies]
            spent = self._server.cpu_ns() - began
            decoded = [msgspec.json.decode(answer) for answer in answers]
            given = [one["url"] for answer in decoded for one in answer["assigned_urls"]]
            if given:
                counted.ask_ns, counted.asks = counted.ask_ns + spent, counted.asks + len(bodies)
                counted.urls += len(given)
                return given
            wait_s = max(50, min(answer["retry_after_ms"] for answer in decoded)) / 1e3
            await asyncio.sleep(min(LONGEST_WAIT_S, wait_s))
        raise RuntimeError("the lived crawl found nothing more to fetch")

    def _report(self, urls: Sequence[str]) -> dict[str, Any]:
        return self.web.report(urls, self._name())

    def _name(self) -> str:
        self._number += 1
        return f"g{self._number}"

    def _say_now_and_then(self, size: int) -> None:
        if time.monotonic() - self._said > SAY_EVERY_S:
            self._said = time.monotonic()
            self._say(f"lived crawl: {self.urls:,} of {size:,} URLs")

    async def _backup(self) -> str:
        connection = await Connection.to(self._server.port)
        answer = msgspec.json.decode(await connection.post("/v1/backups", {}))
        connection.close()
        return str(answer["path"])
