"""One crawler of the fleet: asks, tells, gives back, forgets, repeats itself; never waits for a page."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.crash import web, wire

if TYPE_CHECKING:
    from random import Random

    from tests.crash.wire import Call, Wire

SHORT_MS, LONG_MS = 300, 20_000
IDLE_S = 0.03
RETRY_AFTER_S = 4.0
REMEMBERED = 30


@dataclass
class Crawler:
    """Works for one crawl; `kept` are fetches that it will tell inside its next ask."""

    wire: Wire
    crawl: str
    hosts: range
    chance: Random
    kept: list[dict[str, Any]] = field(default_factory=list)
    told: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    answered: deque[Call] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    async def live(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await self.turn()

    async def turn(self) -> None:
        dice = self.chance.random()
        if dice < 0.08 and self.answered:
            await self.wire.send(self.chance.choice(self.answered))
        elif dice < 0.14:
            urls = [web.some_page(self.chance, self.hosts) for _ in range(3)]
            await self.wire.send(wire.seed(self.wire.name(), self.crawl, urls))
        else:
            await self.work()

    async def work(self) -> None:
        """Ask, then tell what came of it in a few reports; some of it never, so that its lease runs out."""
        told = []
        for url in await self.ask():
            dice = self.chance.random()
            if dice < 0.85:
                told.append(self.fetched(url))
            elif dice < 0.93:
                self.kept.append(self.fetched(url))
        if self.told and self.chance.random() < 0.1:
            told.append(self.chance.choice(self.told))  # it has forgotten that it told this already
        while told:
            count = self.chance.randint(1, 8)
            await self._remembered(wire.tell(self.wire.name(), self.crawl, self.wire.client, told[:count]))
            self.told.extend(fetch for fetch in told[:count] if "fetch_time" in fetch)
            told = told[count:]

    async def ask(self) -> list[str]:
        timeout_ms = self.chance.choice((SHORT_MS, LONG_MS))
        budget = {"max_urls": self.chance.randint(5, 10), "timeout_ms": timeout_ms}
        call = wire.ask(self.wire.name(), self.crawl, self.wire.client, budget, self._context())
        answer = await self._remembered(call)
        given = [str(assigned["url"]) for assigned in answer.get("assigned_urls", ())]
        if not given:
            await asyncio.sleep(IDLE_S)
        return given

    def _context(self) -> dict[str, Any]:
        context: dict[str, Any] = {}
        if self.kept and self.chance.random() < 0.5:
            context["recent_history"], self.kept = self.kept, []
        if self.chance.random() < 0.05:
            context["seed_urls"] = [web.some_page(self.chance, self.hosts)]
        return context

    async def _remembered(self, call: Call) -> dict[str, Any]:
        answer = await self.wire.send(call)
        if answer:
            self.answered.append(call)
        return answer

    def fetched(self, url: str) -> dict[str, Any]:
        """What came of a fetch: mostly a page, now and then a failure, a redirect or a lease given back."""
        dice = self.chance.random()
        if dice < 0.08:
            return {"url": url, "error": "released"}
        instant = datetime.fromtimestamp(self.wire.history.now(), UTC).isoformat(timespec="microseconds")
        fetch: dict[str, Any] = {"url": url, "fetch_time": instant, "elapsed_ms": 5, "bytes": 2_000}
        if dice < 0.11:
            return fetch | {"status": 404}
        if dice < 0.12:
            return fetch | {"status": 500}
        if dice < 0.14:
            return fetch | {"status": 429, "retry_after_s": RETRY_AFTER_S}
        found = fetch | {"status": 200, "relevance": round(self.chance.random(), 3)}
        if dice < 0.16:
            found["redirected_to"] = web.some_page(self.chance, self.hosts)
        return found | {"outlinks": [{"url": link} for link in web.links(url)]}
