"""An ask for thousands of URLs serves others between its steps: whatever they do then, each URL has one holder."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
import pytest

from crawlguide.core.clock import ManualClock
from crawlguide.core.config import Config
from crawlguide.core.definition import Definition
from crawlguide.core.errors import NotFound
from crawlguide.core.messages import VERSION, AskMessage, BudgetMessage, Fetch, ReportMessage, SeedsMessage
from crawlguide.core.turns import LONG_ROWS
from crawlguide.core.types import Crawl
from crawlguide.gateway.opening import MEMORY, open_guide

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from pathlib import Path

    from crawlguide.core.messages import Advice
    from crawlguide.guide.local import LocalGuide

CRAWL = Crawl("default", "default")
KNOWN, MANY = 4 * LONG_ROWS, 2 * LONG_ROWS
FREE = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0}
URLS = [f"https://h{number % 100}.org/{number}" for number in range(KNOWN)]
HOUR_MS = 3_600_000


def definition(**more: object) -> Definition:
    return msgspec.convert({"policy": FREE} | more, Definition)


@pytest.fixture(params=["memory", "folder"])
async def guide(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LocalGuide]:
    found = open_guide(MEMORY if request.param == "memory" else tmp_path / "data", Config(), ManualClock())
    await found.define(CRAWL, definition())
    await found.seed(CRAWL, SeedsMessage(list(URLS)))
    yield found
    await found.close()


def ask(guide: LocalGuide, crawler: str = "c-1", urls: int = MANY, name: str | None = None) -> Awaitable[Advice]:
    return guide.ask(AskMessage(VERSION, crawler, BudgetMessage(urls, timeout_ms=HOUR_MS), name))


def given(*answers: Advice) -> list[str]:
    return [one.url for answer in answers for one in answer.assigned_urls]


async def leased(guide: LocalGuide) -> set[str]:
    found, cursor = set[str](), None
    while True:
        records, cursor = await guide.store.scan(CRAWL, "leased", None, KNOWN, cursor)
        found |= {record.url for record in records}
        if cursor is None:
            return found


async def in_the_middle(asking: Awaitable[Advice], turns: int = 8) -> asyncio.Future[Advice]:
    """The ask, begun and not answered."""
    task = asyncio.ensure_future(asking)
    for _ in range(turns):
        await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_others_have_their_turns_meanwhile(guide: LocalGuide) -> None:
    task, turns = await in_the_middle(ask(guide)), 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 20
    assert len(given(task.result())) == MANY


async def test_asks_at_once_share_nothing_and_hold_what_they_were_given(guide: LocalGuide) -> None:
    urls = given(*await asyncio.gather(*(ask(guide, f"c-{number}", 1_500) for number in range(4))))
    assert len(urls) == len(set(urls)) == KNOWN
    assert set(urls) == await leased(guide)


async def test_short_asks_beside_a_long_one_share_nothing_with_it(guide: LocalGuide) -> None:
    task = await in_the_middle(ask(guide))
    urls = given(*await asyncio.gather(task, *(ask(guide, f"c-{number}", 10) for number in range(2, 20))))
    assert len(urls) == len(set(urls)) == MANY + 180
    assert set(urls) == await leased(guide)


async def test_a_limit_of_pages_holds_for_asks_at_once(guide: LocalGuide) -> None:
    await guide.define(CRAWL, definition(limits={"max_pages": MANY + 50}))
    answers = await asyncio.gather(*(ask(guide, f"c-{number}") for number in range(3)))
    assert len(given(*answers)) == MANY + 50


async def test_a_pause_in_the_middle_counts(guide: LocalGuide) -> None:
    task = await in_the_middle(ask(guide))
    await guide.pause(CRAWL, paused=True)
    answer = await task
    assert (given(answer), answer.metadata.crawl_state, await leased(guide)) == ([], "paused", set())


async def test_a_new_definition_in_the_middle_counts(guide: LocalGuide) -> None:
    task = await in_the_middle(ask(guide))
    await guide.define(CRAWL, definition(rules={"ban": {"hosts": ["h7.org"]}}))
    urls = given(await task)
    assert len(urls) == MANY
    assert not [url for url in urls if url.startswith("https://h7.org/")]


async def test_a_crawl_deleted_in_the_middle_stays_deleted(guide: LocalGuide) -> None:
    task = await in_the_middle(ask(guide))
    await guide.delete(CRAWL)
    with pytest.raises(NotFound):
        await task
    assert await guide.store.crawl_get(CRAWL) is None


async def test_what_is_reported_in_the_middle_is_not_given(guide: LocalGuide) -> None:
    task = await in_the_middle(ask(guide))
    told = URLS[:500]
    await guide.tell(ReportMessage(VERSION, "c-2", [Fetch(url, 200) for url in told]))
    assert not set(given(await task)) & set(told)


async def test_rows_that_serve_other_urls_by_then_mislead_nobody(guide: LocalGuide) -> None:
    task = await in_the_middle(ask(guide))
    await guide.store.purge(CRAWL, "queued", "h3.org")
    await guide.seed(CRAWL, SeedsMessage([f"https://new.org/{number}" for number in range(300)]))
    urls = given(await task)
    assert set(urls) == await leased(guide)
    assert len(urls) == len(set(urls))


@pytest.mark.parametrize("turns", [1, 8, 30, 45, 60])
async def test_what_nobody_waits_for_any_more_is_given_back(guide: LocalGuide, turns: int) -> None:
    task = asyncio.ensure_future(ask(guide))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    while guide._leaving:
        await asyncio.wait(guide._leaving)
    if task.cancelled():
        assert await leased(guide) == set()


async def test_one_with_an_id_is_kept_for_whoever_comes_again(guide: LocalGuide) -> None:
    task = await in_the_middle(ask(guide, name="r-1"))
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    urls = given(await ask(guide, name="r-1"))
    assert set(urls) == await leased(guide)
    assert len(urls) == MANY
