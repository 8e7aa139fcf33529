"""A long report is taken in portions: each of them whole and in order, and told again it counts once."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
import pytest

from crawlguide.core.config import Config
from crawlguide.core.definition import Definition, Policy
from crawlguide.core.errors import NotFound
from crawlguide.core.messages import VERSION, Fetch, Outlink, ReportMessage, SeedsMessage
from crawlguide.core.turns import let_others
from crawlguide.core.types import Crawl
from crawlguide.gateway.opening import open_guide
from crawlguide.guide.crawl.transfer import imported
from crawlguide.guide.tell.portions import MOST_COST, portions
from crawlguide.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path
    from typing import Any

    from crawlguide.core.messages import Ack
    from crawlguide.guide.local import LocalGuide

CRAWL = Crawl("default", "default")
MANY = 5 * MOST_COST


def page(number: int, links: int = 0, fetch_time: str | None = None) -> Fetch:
    outlinks = [Outlink(f"/{number}/{link}") for link in range(links)]
    return Fetch(f"https://h{number % 7}.org/{number}", 200, outlinks=outlinks, fetch_time=fetch_time)


def report(fetches: list[Fetch], report_id: str | None = None) -> ReportMessage:
    return ReportMessage(VERSION, "c-1", fetches, "default", report_id)


async def stored(guide: LocalGuide) -> int:
    """How many fetches the store has, none before the first portion makes the crawl."""
    with suppress(NotFound):
        return int((await guide.store.stats(CRAWL))["fetches"])
    return 0


async def beside(guide: LocalGuide, message: ReportMessage, step: Callable[[], Coroutine[Any, Any, object]]) -> Ack:
    """Tell a report, and take one step of somebody else between two of its portions."""
    telling = asyncio.create_task(guide.tell(message))
    while not telling.done() and not await stored(guide):
        await let_others()
    assert not telling.done()
    await step()
    return await telling


@pytest.fixture
def guide() -> LocalGuide:
    return open_guide(":memory:", Config(), ManualClock(1_000.0))


def test_an_ordinary_report_is_one_portion_as_it_came() -> None:
    fetches = [page(number, links=20) for number in range(10)]
    (only,) = portions(fetches, "r-1")
    assert only is fetches
    assert [list(one) for one in portions([], "r-1")] == [[]]


@pytest.mark.parametrize("report_id", [None, "r-1"])
@pytest.mark.parametrize("links", [0, 1, 40, 3 * MOST_COST])
def test_portions_are_the_report_in_its_order(links: int, report_id: str | None) -> None:
    fetches = [page(number, links) for number in range(MANY if links < 2 else 30)]
    cut = list(portions(fetches, report_id))
    assert [fetch.url for some in cut for fetch in some] == [fetch.url for fetch in fetches]
    assert len(cut) > 1
    assert all(len(some) == 1 or len(some) * (links + 2) <= MOST_COST for some in cut)


def test_each_fetch_of_a_cut_report_has_a_name_of_its_own_unless_it_has_a_time() -> None:
    fetches = [page(number, fetch_time="then" if number % 2 else None) for number in range(MANY)]
    names = [fetch.fetch_time for some in portions(fetches, "r-1") for fetch in some]
    assert set(names[1::2]) == {"then"}
    assert len(set(names[::2])) == MANY // 2
    assert {fetch.fetch_time for some in portions(fetches, None) for fetch in some} == {"then", None}


async def test_a_long_report_is_acknowledged_as_one(guide: LocalGuide) -> None:
    fetches = [page(number, links=2) for number in range(MANY)]
    fetches[7] = Fetch("no url", 200)
    ack = await guide.tell(report(fetches))
    assert (ack.accepted, ack.discovered) == (MANY - 1, 2 * (MANY - 1))
    assert [result.url for result in ack.results] == [fetch.url for fetch in fetches]
    assert [number for number, result in enumerate(ack.results) if result.status != "ok"] == [7]


async def test_a_long_report_teaches_the_same_as_its_portions_one_by_one(guide: LocalGuide) -> None:
    other = open_guide(":memory:", Config(), ManualClock(1_000.0))
    fetches = [page(number, links=3) for number in range(MANY)]
    await guide.tell(report(fetches))
    for some in portions(fetches, None):
        await other.tell(report(list(some)))
    found = [await one.store.scan(CRAWL, None, None, 100_000, None) for one in (guide, other)]
    assert found[0] == found[1]


async def test_others_are_served_between_portions(guide: LocalGuide) -> None:
    seen: list[int] = []

    async def look() -> None:
        seen.append((await guide.store.stats(CRAWL))["fetches"])

    await beside(guide, report([page(number) for number in range(MANY)]), look)
    assert 0 < seen[0] < MANY


async def test_the_same_report_twice_at_once_counts_once(guide: LocalGuide) -> None:
    message = report([page(number) for number in range(MANY)], "r-1")
    first, second = await asyncio.gather(guide.tell(message), guide.tell(message))
    assert first == second
    assert (await guide.store.stats(CRAWL))["fetches"] == MANY


async def test_a_report_that_a_crash_cut_short_counts_once_when_it_comes_again(tmp_path: Path) -> None:
    """The folder is copied between two portions: what is there then is what a crash would leave."""
    guide, message = open_guide(tmp_path / "data", Config()), report([page(number) for number in range(MANY)], "r-1")

    async def crash() -> None:
        guide.store._disk.checkpoint(tmp_path / "left")  # type: ignore[attr-defined]

    await beside(guide, message, crash)
    await guide.close()
    after = open_guide(tmp_path / "left", Config())
    assert 0 < (await after.store.stats(CRAWL))["fetches"] < MANY
    ack = await after.tell(message)
    assert (await after.store.stats(CRAWL))["fetches"] == MANY
    assert {result.reason for result in ack.results} == {None, "duplicate"}
    assert ack == await after.tell(message)
    await after.close()


@pytest.mark.parametrize(
    "fetches",
    [
        [page(1, links=5_000)],
        [Fetch("https://h1.org/robots.txt", 200, text="User-agent: *\nDisallow: /x"), page(1, links=50)],
    ],
    ids=["long-page", "robots"],
)
async def test_one_portion_in_which_others_are_served_counts_once_after_a_crash(
    tmp_path: Path, fetches: list[Fetch]
) -> None:
    guide, message = open_guide(tmp_path / "data", Config()), report(fetches, "r-1")
    await guide.define(CRAWL, Definition())
    told = asyncio.ensure_future(guide.tell(message))
    while not (await guide.store.stats(CRAWL))["fetches"]:  # noqa: ASYNC110 - no event tells of it
        await asyncio.sleep(0)
    assert not told.done()
    await guide.store.commit()  # as an ask of another crawl does
    guide.store._disk.checkpoint(tmp_path / "left")  # type: ignore[attr-defined]
    await told
    await guide.close()
    after = open_guide(tmp_path / "left", Config())
    await after.tell(message)
    assert (await after.store.stats(CRAWL))["fetches"] == len(fetches)
    await after.close()


async def test_a_crawl_that_is_deleted_between_portions_does_not_come_back(guide: LocalGuide) -> None:
    with pytest.raises(NotFound):
        await beside(guide, report([page(number) for number in range(MANY)]), lambda: guide.delete(CRAWL))
    assert await guide.crawls.names("default") == []


@pytest.mark.parametrize("again", [False, True])
async def test_an_import_puts_nothing_into_a_crawl_that_was_deleted_meanwhile(guide: LocalGuide, again: bool) -> None:
    """Not even if it has found nothing so far, or another crawl has the name by now."""
    await guide.define(CRAWL, Definition())
    lines = [*[b""] * 30_000, b'{"url": "https://a.org/", "state": "queued"}']
    importing = asyncio.create_task(imported(guide, CRAWL, lines))
    await asyncio.sleep(0)
    await guide.delete(CRAWL)
    if again:
        await guide.define(CRAWL, Definition())
    with pytest.raises(NotFound):
        await importing
    assert await guide.crawls.names("default") == [CRAWL] * again
    if again:
        assert (await guide.store.stats(CRAWL))["queued"] == 0


@pytest.mark.parametrize("again", [False, True])
async def test_a_crawl_that_is_deleted_while_it_is_changed_does_not_come_back(again: bool) -> None:
    """Not even in another that has its name by now. Whenever that is: patterns are compiled beside the event loop."""
    policy = Policy(robots="ignore", exclude_patterns=tuple(f"/{number}/.*a.*b" for number in range(20)))

    async def change(old: Definition) -> Definition:
        return msgspec.structs.replace(old, policy=msgspec.structs.replace(policy, default_delay_s=9.0))

    for steps in range(100):
        guide = open_guide(":memory:", Config(), ManualClock(1_000.0))
        await guide.define(CRAWL, Definition(policy=policy))
        await guide.seed(CRAWL, SeedsMessage([f"https://h{number}.org/" for number in range(300)]))
        changing = asyncio.create_task(guide.redefine(CRAWL, change))
        for _ in range(steps):
            await asyncio.sleep(0 if steps < 90 else 0.001)  # a busy machine compiles late
        is_over = changing.done()
        await guide.delete(CRAWL)
        if again:
            await guide.crawls.get(CRAWL, 1_000.0)
        await asyncio.gather(changing, return_exceptions=True)
        assert await guide.crawls.names("default") == [CRAWL] * again
        assert await guide.definition(CRAWL) == (Definition() if again else None), steps
        await guide.close()
        if is_over:
            return
    raise AssertionError("it never ended")


async def test_a_crawl_that_is_defined_anew_between_portions_goes_on(guide: LocalGuide) -> None:
    definition = (await guide.crawls.get(CRAWL, 0.0)).definition
    ack = await beside(guide, report([page(number) for number in range(MANY)]), lambda: guide.define(CRAWL, definition))
    assert ack.accepted == MANY


async def test_many_seeds_are_added_in_portions(guide: LocalGuide) -> None:
    seeds = [f"https://h{number}.org/" for number in range(3_000)]
    assert await guide.seed(CRAWL, SeedsMessage([*seeds, *seeds])) == 3_000
