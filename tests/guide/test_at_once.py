"""The same request several times at once, by whatever doors it comes: it counts once."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from crawlguide.core.clock import ManualClock
from crawlguide.core.config import Config
from crawlguide.core.errors import Conflict, StorageFull
from crawlguide.core.messages import VERSION, AskMessage, BudgetMessage, Fetch, ReportMessage, SeedsMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway.opening import MEMORY, open_guide
from crawlguide.guide.robots.keeper import LARGE_BYTES
from crawlguide.store.embedded.disk import Disk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from crawlguide.guide.local import LocalGuide

CRAWL = Crawl("default", "default")
TIMES = 8
LONG_FILE = "User-agent: *\nCrawl-delay: 1\n" + "# nothing\n" * LARGE_BYTES  # read in a thread: others come in between
PAGES = tuple(f"https://a.org/{number}" for number in range(3))


def report(report_id: str | None = "t-1", pages: Sequence[str] = PAGES, **more: Any) -> ReportMessage:
    """Some pages, and a file that takes its time."""
    robots = Fetch("https://a.org/robots.txt", 200, text=LONG_FILE, **more)
    return ReportMessage(VERSION, "c-1", [*(Fetch(url, 200, **more) for url in pages), robots], report_id=report_id)


@pytest.fixture(params=["memory", "folder"])
async def guide(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LocalGuide]:
    found = open_guide(MEMORY if request.param == "memory" else tmp_path / "data", Config(), ManualClock())
    await found.seed(CRAWL, SeedsMessage([f"https://h{number}.org/" for number in range(20)]))
    yield found
    assert not found._under_way._tasks
    await found.close()


async def fetches(guide: LocalGuide) -> int:
    return int((await guide.store.stats(CRAWL))["fetches"])


async def test_one_report_told_several_times_at_once_counts_once(guide: LocalGuide) -> None:
    acks = await asyncio.gather(*(guide.tell(report()) for _ in range(TIMES)))
    assert acks == acks[:1] * TIMES
    assert await fetches(guide) == 4


async def test_a_report_without_an_id_counts_once_by_its_times(guide: LocalGuide) -> None:
    told = [guide.tell(report(None, fetch_time="2025-11-03T14:15:00Z")) for _ in range(TIMES)]
    acks = await asyncio.gather(*told)
    assert sum(ack.accepted for ack in acks) == await fetches(guide) == 4


async def test_one_fetch_twice_in_a_report_counts_once_by_its_time(guide: LocalGuide) -> None:
    ack = await guide.tell(report(None, PAGES[:1] * 5, fetch_time="2025-11-03T14:15:00Z"))
    assert (ack.accepted, ack.results[1].reason) == (2, "duplicate")


async def test_another_body_with_the_same_id_at_once_is_a_conflict(guide: LocalGuide) -> None:
    first, other = await asyncio.gather(guide.tell(report()), guide.tell(report(pages=[])), return_exceptions=True)
    assert isinstance(other, Conflict)
    assert not isinstance(first, BaseException)
    assert await fetches(guide) == 4


async def test_one_ask_several_times_at_once_is_answered_once(guide: LocalGuide) -> None:
    ask = AskMessage(VERSION, "c-1", BudgetMessage(3), "r-1")
    answers = await asyncio.gather(*(guide.ask(ask) for _ in range(TIMES)))
    assert answers == answers[:1] * TIMES
    stats = await guide.store.stats(CRAWL)
    assert (stats["leased"], stats["asks"]) == (3, 1)


async def test_ids_of_asks_reports_crawls_and_tenants_do_not_wait_for_each_other(guide: LocalGuide) -> None:
    ask = AskMessage(VERSION, "c-1", BudgetMessage(1), "same", "another")
    told = [guide.tell(report("same")), guide.tell(report("same"), "another tenant"), guide.ask(ask)]
    await asyncio.gather(*told)
    assert await fetches(guide) == 4


@pytest.mark.parametrize("gone", [1, TIMES])
async def test_a_report_whose_sender_has_gone_counts_once_and_keeps_nobody_waiting(
    guide: LocalGuide, gone: int
) -> None:
    tasks = [asyncio.create_task(guide.tell(report())) for _ in range(TIMES)]
    await asyncio.sleep(0.001)
    for task in tasks[:gone]:
        task.cancel()
    async with asyncio.timeout(20):
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (await guide.tell(report())).accepted == 4
    assert await fetches(guide) == 4


async def test_a_report_that_could_not_be_kept_is_kept_by_the_next_who_waits(
    guide: LocalGuide, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = Disk.write, []

    def once_full(disk: Disk, *arguments: object) -> None:
        calls.append(disk)
        if len(calls) == 1:
            raise StorageFull("no room", retry_after_s=5.0)
        real(disk, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Disk, "write", once_full)
    outcomes = await asyncio.gather(*(guide.tell(report()) for _ in range(TIMES)), return_exceptions=True)
    assert sum(isinstance(one, StorageFull) for one in outcomes) == bool(calls)
    assert await fetches(guide) == 4


async def test_a_guide_that_closes_brings_to_its_end_what_was_begun(tmp_path: Path) -> None:
    guide = open_guide(tmp_path / "data", Config(), ManualClock())
    task = asyncio.create_task(guide.tell(report()))
    await asyncio.sleep(0.001)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await guide.close()
    again = open_guide(tmp_path / "data", Config(), ManualClock())
    assert await fetches(again) == 4
    await again.close()
