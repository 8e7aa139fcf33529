"""Eight crawlers and their operators, over one server that may come and go."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import httpx

from tests.crash.crawler import Crawler
from tests.crash.operators import BULK, HOSTS, MAIN, SIDE, Gardener, Operator
from tests.crash.wire import Wire

if TYPE_CHECKING:
    from tests.crash.history import History

CRAWLERS = (SIDE, SIDE, BULK, MAIN, MAIN, MAIN, MAIN, MAIN)  # for which crawl each of them works
TIMEOUT_S = 10.0


def connection(port: int) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=TIMEOUT_S, trust_env=False)


@dataclass
class Fleet:
    """`prepared` is set when there is something to crawl; after `stop` everything that was sent is answered first."""

    http: httpx.AsyncClient
    history: History
    seed: int
    prepared: asyncio.Event = field(default_factory=asyncio.Event)
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def work(self) -> None:
        chance = Random(self.seed)
        operator = Operator(self._wire("operator"), Random(chance.random()))
        gardener = Gardener(self._wire("gardener"), Random(chance.random()))
        await operator.prepare()
        self.prepared.set()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(operator.live(self.stop))
            tasks.create_task(gardener.live(self.stop))
            for number, crawl in enumerate(CRAWLERS):
                crawler = Crawler(self._wire(f"c{number}"), crawl, HOSTS[crawl], Random(chance.random()))
                tasks.create_task(crawler.live(self.stop))

    def _wire(self, client: str) -> Wire:
        return Wire(self.http, self.history, client)
