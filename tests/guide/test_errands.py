"""Errands of the server itself: in turns between tenants, crawls and domains, bounded, and gone with their crawl."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import pytest

from crawlguide.core.types import Crawl
from crawlguide.guide.robots import errands
from crawlguide.guide.robots.errands import Errands
from crawlguide.guide.robots.marks import Marks
from crawlguide.testing import ManualClock

ONE, TWO = Crawl("a", "one"), Crawl("a", "two")
ELSEWHERE = Crawl("b", "one")


class Going(NamedTuple):
    crawl: Crawl
    domain: str
    number: int = 0


def queue(clock: ManualClock, at_once: int = 256, of_domain: int = 8) -> Errands[Going]:
    return Errands(clock, at_once, of_domain)


def taken(waiting: Errands[Going]) -> list[Going]:
    """All that may be under way at once."""
    found = []
    while (one := waiting.get_nowait()) is not None:
        found.append(one)
    return found


def test_crawls_and_their_domains_take_turns(clock: ManualClock) -> None:
    waiting = queue(clock)
    for number in range(3):
        waiting.put_nowait(Going(ONE, "a.org", number))
    waiting.put_nowait(Going(ONE, "b.org"))
    waiting.put_nowait(Going(TWO, "c.org"))
    assert [(one.crawl.name, one.domain) for one in taken(waiting)] == [
        ("one", "a.org"),
        ("two", "c.org"),
        ("one", "b.org"),
        ("one", "a.org"),
        ("one", "a.org"),
    ]


def test_tenants_take_turns_however_many_crawls_one_has(clock: ManualClock) -> None:
    waiting = queue(clock)
    for number in range(10):
        waiting.put_nowait(Going(Crawl("a", str(number)), f"{number}.org"))
    waiting.put_nowait(Going(ELSEWHERE, "x.org"))
    assert [one.crawl.tenant for one in taken(waiting)][:2] == ["a", "b"]


def test_few_errands_go_to_one_domain_at_once(clock: ManualClock) -> None:
    waiting = queue(clock, of_domain=2)
    for crawl in (ONE, TWO, ELSEWHERE):
        for number in range(5):
            waiting.put_nowait(Going(crawl, "a.org", number))
    under_way = taken(waiting)
    assert len(under_way) == 2
    waiting.done(under_way[0])
    assert len(taken(waiting)) == 1


@pytest.mark.parametrize("at_once", [8, 64, 256])
def test_there_is_room_for_whoever_comes_next(clock: ManualClock, at_once: int) -> None:
    """However many silent hosts a crawl, or all crawls of a tenant, go to."""
    waiting = queue(clock, at_once)
    for number in range(1_000):
        waiting.put_nowait(Going(ONE, f"{number}.org"))
    first = len(taken(waiting))
    waiting.put_nowait(Going(TWO, "good.org"))
    assert len(taken(waiting)) == 1
    for number in range(50):
        for crawl in range(20):
            waiting.put_nowait(Going(Crawl("a", f"crawl {crawl}"), f"{number}.{crawl}.org"))
    second = len(taken(waiting))
    assert first >= at_once * 0.3
    assert first + 1 + second <= at_once * 0.75
    waiting.put_nowait(Going(ELSEWHERE, "good.org"))
    assert len(taken(waiting)) == 1


def test_so_many_wait_and_no_more(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errands, "MOST_OF_CRAWL", 10)
    monkeypatch.setattr(errands, "MOST_OF_TENANT", 15)
    waiting = queue(clock)
    kept = [
        waiting.put_nowait(Going(crawl, f"{n}.org"), at) for crawl in (ONE, TWO) for n in range(9) for at in (None, 9e9)
    ]
    assert (sum(kept), len(waiting)) == (15, 15)
    assert waiting.put_nowait(Going(ELSEWHERE, "a.org"))
    taken(waiting)
    clock.advance(1e10)
    taken(waiting)
    assert len(waiting) == 0


def test_what_waits_already_does_not_wait_twice(clock: ManualClock) -> None:
    waiting, going = queue(clock), Going(ONE, "a.org")
    assert [waiting.put_nowait(going) for _ in range(2)] == [True, False]
    assert [waiting.put_nowait(going, 1e10) for _ in range(2)] == [True, False]
    assert taken(waiting) == [going]
    assert not waiting.put_nowait(going)  # it is under way
    waiting.done(going)
    assert waiting.put_nowait(going)


async def test_an_errand_for_later_has_its_turn_then(clock: ManualClock) -> None:
    waiting, going = queue(clock), Going(ONE, "a.org")
    waiting.put_nowait(going, clock.now() + 60.0)
    assert taken(waiting) == []
    clock.advance(60.0)
    assert await waiting.get() == going


async def test_who_waits_for_an_errand_gets_the_next_one(clock: ManualClock) -> None:
    waiting, going = queue(clock), Going(ONE, "a.org")
    waits = asyncio.create_task(waiting.get())
    await asyncio.sleep(0)
    waiting.put_nowait(going)
    assert await waits == going


def test_the_errands_of_a_deleted_crawl_go_with_it(clock: ManualClock) -> None:
    waiting = queue(clock)
    for number, crawl in enumerate((ONE, ONE, TWO)):
        waiting.put_nowait(Going(crawl, f"{number}.org"))
        waiting.put_nowait(Going(crawl, f"{number}.org"), clock.now() + 1.0)
    first = waiting.get_nowait()
    assert first is not None
    assert waiting.is_wanted(first)
    waiting.forget(ONE)
    assert not waiting.is_wanted(first)
    clock.advance(1.0)
    assert [one.crawl for one in taken(waiting)] == [TWO]
    waiting.done(first)


def test_an_errand_of_a_deleted_crawl_is_none_of_the_next_one(clock: ManualClock) -> None:
    """However alike they are: of the one that is still under way nothing comes, and its end ends no other."""
    waiting = queue(clock)
    waiting.put_nowait(Going(ONE, "a.org"))
    before = waiting.get_nowait()
    waiting.forget(ONE)
    waiting.put_nowait(Going(ONE, "a.org"))
    after = waiting.get_nowait()
    assert before is not None
    assert after is not None
    assert [waiting.is_wanted(one) for one in (before, after)] == [False, True]
    waiting.done(before)
    assert waiting.is_wanted(after)


async def test_one_that_fails_does_not_end_the_others(clock: ManualClock) -> None:
    waiting, went = queue(clock), []

    async def go(going: Going) -> None:
        went.append(going.number)
        if going.number % 2:
            raise MemoryError

    for number in range(6):
        waiting.put_nowait(Going(ONE, "a.org", number))
    running = asyncio.create_task(waiting.run(go))
    async with asyncio.timeout(10):
        while len(went) < 6:  # noqa: ASYNC110 - nobody says when
            await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert len(waiting) == 0


def test_marks_fade_and_are_bounded() -> None:
    marks = Marks(most=3, fade_s=10.0)
    assert [marks.add(key, 0.0) for key in "aab"] == [True, False, True]
    assert marks.add("a", 10.0)
    assert [marks.add(key, 11.0) for key in "cde"] == [True] * 3
    assert len(marks) == 3


def test_to_look_for_a_mark_sets_none() -> None:
    marks = Marks(most=3, fade_s=10.0)
    assert not marks.has("a", 0.0)
    marks.add("a", 0.0)
    assert [marks.has("a", at) for at in (0.0, 9.9, 10.0)] == [True, True, False]
    assert marks.add("a", 10.0)
