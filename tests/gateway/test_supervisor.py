"""Background tasks that fail are started again, and the server says so and goes on."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from crawlguide.core.config import Config
from crawlguide.core.errors import DataError, StorageFull
from crawlguide.core.messages import SeedsMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway import supervisor
from crawlguide.gateway.http import Door
from crawlguide.gateway.opening import open_guide
from crawlguide.gateway.service import Service
from crawlguide.gateway.supervisor import Supervisor
from crawlguide.gateway.upkeep import Upkeep
from crawlguide.testing import ManualClock

if TYPE_CHECKING:
    from crawlguide.guide.local import LocalGuide

FAULTS = [ValueError, MemoryError, RecursionError, OSError, SystemExit, asyncio.CancelledError]


async def until(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - nobody says when
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_task_that_fails_is_started_again(fault: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "FIRST_REST_S", 0.01)
    runs, background = [], Supervisor()

    async def failing() -> None:
        runs.append(1)
        if len(runs) < 4:
            raise fault
        await asyncio.Event().wait()

    background.start("robots", failing)
    await until(lambda: len(runs) == 4)
    assert background.not_running() == []
    await background.stop()


async def test_one_that_rests_is_named_and_another_runs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "FIRST_REST_S", 60.0)
    background = Supervisor()

    async def failing() -> None:
        raise RuntimeError("no")

    async def ending() -> None:
        pass

    background.start("sitemaps", failing)
    background.start("robots", ending)

    async def running() -> None:
        await asyncio.Event().wait()

    background.start("upkeep", running)
    await until(lambda: len(background.not_running()) == 2)
    assert background.not_running() == ["robots", "sitemaps"]
    await background.stop()


async def ready(door: Door) -> tuple[int, Any]:
    transport = httpx.ASGITransport(door.app())
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/readyz")
    return answer.status_code, json.loads(answer.content)


@pytest.fixture
def guide(clock: ManualClock) -> LocalGuide:
    return open_guide(":memory:", Config(), clock)


async def test_ready_says_what_does_not_run(guide: LocalGuide) -> None:
    service = Service(guide, Config())
    door = Door(service)
    assert await ready(door) == (200, {"status": "ready"})
    service.not_running = lambda: ["robots"]
    assert await ready(door) == (200, {"status": "degraded", "not_running": ["robots"]})


async def test_who_cannot_write_is_not_ready_until_that_has_passed(
    guide: LocalGuide, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, upkeep = Service(guide, Config()), Upkeep(guide, 1.0)
    door = Door(service)
    service.trouble = lambda: upkeep.trouble

    async def full(durable: bool = True) -> None:
        raise StorageFull("no space left on /secret/place")

    with monkeypatch.context() as patch:
        patch.setattr(guide.store, "commit", full)
        await upkeep.once()
        status, said = await ready(door)
    assert (status, said["error"]["code"]) == (503, "unavailable")
    assert "secret" not in json.dumps(said)
    await upkeep.once()
    assert await ready(door) == (200, {"status": "ready"})


@pytest.mark.parametrize("fault", [ValueError("odd"), DataError("torn"), RecursionError()])
async def test_a_crawl_that_cannot_be_kept_up_does_not_keep_the_others_from_it(
    guide: LocalGuide, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    for name in ("bad", "good", "worse"):
        await guide.seed(Crawl("default", name), SeedsMessage(["https://a.org/"]))
    kept, expire = [], guide.store.expire

    async def failing(crawl: Crawl, at: float) -> int:
        if crawl.name != "good":
            raise fault
        kept.append(crawl.name)
        return await expire(crawl, at)

    monkeypatch.setattr(guide.store, "expire", failing)
    upkeep = Upkeep(guide, 1.0)
    await upkeep.once()
    assert (kept, upkeep.trouble) == (["good"], "")
