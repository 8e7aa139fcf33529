"""The fleet and the checker together, on a guide in this process that never crashes: nothing may be noticed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import httpx

from crawlguide import AsyncGuide
from crawlguide.core.config import Config
from crawlguide.gateway.http import Door
from crawlguide.gateway.service import Service
from tests.crash import checker, final, fleet
from tests.crash.facts import Word, told
from tests.crash.history import History, load

if TYPE_CHECKING:
    from pathlib import Path

WORKS_FOR_S = 1.5


@dataclass
class Lossy(httpx.AsyncBaseTransport):
    """A wire that now and then loses a request on its way, or its answer."""

    inner: httpx.AsyncBaseTransport
    chance: Random

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        dice = self.chance.random()
        if dice < 0.05:
            raise httpx.ConnectError("lost on its way")
        response = await self.inner.handle_async_request(request)
        if dice < 0.15:
            await response.aclose()
            raise httpx.ReadError("the answer was lost")
        return response


async def test_a_lossy_wire_breaks_no_promise(tmp_path: Path) -> None:
    async with AsyncGuide.open() as guide:
        app = Door(Service(guide._guide, Config())).app()
        transport = Lossy(httpx.ASGITransport(app=app), Random(1))
        with History(tmp_path / "history.jsonl") as history:
            async with httpx.AsyncClient(transport=transport, base_url="http://guide") as http:
                crawlers = fleet.Fleet(http, history, seed=1)
                working = asyncio.create_task(crawlers.work())
                await asyncio.sleep(WORKS_FOR_S)
                crawlers.stop.set()
                await working
        operations, notes = load(history.path)
        end = await final.of_guide(guide)
    assert not checker.check(operations, notes, end)
    words = [item.word for item in told(operations)]
    assert words.count(Word.KEPT) > 50
    assert any(operation.retried for operation in operations)
    assert any(len(operation.answers) > 1 for operation in operations)
