"""Copies of robots.txt: how failures count, for whom a copy counts, how long it is kept, what old folders hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from crawlguide.core.config import Config, CrawlsOptions
from crawlguide.core.definition import Definition, Policy
from crawlguide.core.messages import VERSION, AskMessage, BudgetMessage, Fetch, ReportMessage, SeedsMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway.opening import open_guide
from crawlguide.guide.robots import copies
from crawlguide.guide.robots.copies import GUIDE, HOUSE_BEFORE, house_of
from crawlguide.guide.robots.outgoing import Answer
from crawlguide.policy.robots.cache import LONGEST_TOLD_S, CachedRobots, newer
from tests.support import NOW

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.guide.local import LocalGuide
    from crawlguide.testing import ManualClock

FILE, ORIGIN = "https://a.org/robots.txt", "https://a.org"
ALL, NOTHING = "User-agent: *\nDisallow: /", ""
MINE, THEIRS = Crawl("default", "default"), Crawl("other", "default")
HOUR, DAY = 3_600.0, 86_400.0
NAN, INFINITE = float("nan"), float("inf")


class Web:
    """Answers every request alike; a `fault` is raised instead."""

    def __init__(self, answer: Answer, fault: Exception | None = None) -> None:
        self.answer, self.fault, self.asked = answer, fault, 0

    async def get(self, url: str, agent: str, most_bytes: int) -> Answer:
        self.asked += 1
        if self.fault is not None:
            raise self.fault
        return self.answer


@pytest.fixture
def guide(clock: ManualClock) -> LocalGuide:
    return open_guide(":memory:", Config(), clock)


async def define(guide: LocalGuide, crawl: Crawl, **policy: Any) -> None:
    policy = {"robots": "crawler", "default_delay_s": 0, "max_retries": 0, **policy}
    await guide.define(crawl, Definition(policy=Policy(**policy)))
    await guide.seed(crawl, SeedsMessage([f"https://a.org/{number}" for number in range(20)]))


async def given(guide: LocalGuide, crawl: Crawl = MINE, most: int = 3) -> list[str]:
    ask = AskMessage(VERSION, "c-1", BudgetMessage(most), crawl_id=crawl.name)
    return [one.url for one in (await guide.ask(ask, crawl.tenant)).assigned_urls]


async def tell(guide: LocalGuide, crawl: Crawl = MINE, **fetch: Any) -> None:
    await guide.tell(ReportMessage(VERSION, "c-1", [Fetch(FILE, **fetch)], crawl.name), crawl.tenant)


# failures


@pytest.mark.parametrize("told", [{"status": 503}, {"error": "timeout"}, {"status": 200}, {"status": 301}])
async def test_however_many_failures_are_told_the_file_is_tried_again_within_the_hour(
    guide: LocalGuide, clock: ManualClock, told: dict[str, Any]
) -> None:
    await define(guide, MINE, unreliable_threshold=1.0)
    for _ in range(3):
        fetches = [Fetch(FILE, **told) for _ in range(1_000)]
        await guide.tell(ReportMessage(VERSION, "c-1", fetches, "default"))
    assert await given(guide) == []
    assert (await guide.robots.copies.known("default", ORIGIN)).failures == 1
    clock.advance(HOUR)
    assert await given(guide) == [FILE]
    await tell(guide, status=404)
    clock.advance(HOUR)  # the host itself rests after all these failures
    assert len(await given(guide)) == 3


async def test_a_host_that_is_dead_for_months_is_asked_every_hour_and_can_come_back(
    guide: LocalGuide, clock: ManualClock
) -> None:
    guide.robots.cache.fetched = True
    await define(guide, MINE, robots="obey")
    web = Web(Answer(problem="nobody answers"))
    for _ in range(1_500):
        assert await given(guide) == []
        await guide.robots.errand(web)
        clock.advance(HOUR)
    assert web.asked == 1_500
    web.answer = Answer(404)
    await given(guide)
    await guide.robots.errand(web)
    clock.advance(1.0)
    assert await given(guide)


@pytest.mark.parametrize("failures", [-5, 1, 17, 1_025, 10**9, 2**63])
def test_the_wait_after_failures_is_never_longer_than_an_hour(failures: int) -> None:
    assert 0.0 < CachedRobots(tried=NOW, failures=failures).healed(NOW).due() - NOW <= HOUR or failures < 0
    assert CachedRobots(tried=NOW, failures=abs(failures)).due() - NOW <= HOUR


WRONG = [
    {"failures": 1_025, "tried": NOW - 1},
    {"failures": -3},
    {"failures": 2**60, "version": -1},
    {"version": 2**64 - 1},
    {"read": NAN, "tried": NAN},
    {"read": INFINITE, "tried": INFINITE, "failures": 3},
    {"read": NOW + 1e9, "tried": NOW + 1e9},
    {"version": 2**63},
    {"failures": 1.5},
    {"body": 7},
    {"failures": 2**70},
]


@pytest.mark.parametrize("wrong", WRONG)
async def test_what_a_folder_of_before_holds_is_healed(guide: LocalGuide, clock: ManualClock, wrong: Any) -> None:
    await guide.store.crawl_put(HOUSE_BEFORE, b"", NOW)
    try:
        stored = msgspec.msgpack.encode({"body": b"", "read": NOW, "tried": NOW, "failures": 0, "version": 1, **wrong})
    except OverflowError:
        stored = b"\x81\xa8failures\xcf"
    await guide.store.state_put(HOUSE_BEFORE, ORIGIN, stored, 1)
    await define(guide, MINE)
    await given(guide)
    clock.advance(50 * HOUR)
    assert await given(guide) == [FILE]
    await tell(guide, status=404)
    assert len(await given(guide)) == 3


async def test_a_file_of_before_counts_and_is_gone_when_it_does_no_longer(clock: ManualClock, tmp_path: Path) -> None:
    before = open_guide(tmp_path, Config(), clock)
    await define(before, MINE)
    await before.store.crawl_put(HOUSE_BEFORE, b"", NOW)
    copy = CachedRobots(ALL.encode(), clock.now(), clock.now(), 0, 1)
    await before.store.state_put(HOUSE_BEFORE, ORIGIN, msgspec.msgpack.encode(copy), 1)
    await before.close()
    guide = open_guide(tmp_path, Config(), clock)
    assert await given(guide) == []
    for _ in range(2):
        await guide.upkeep()
        assert await guide.store.crawl_get(HOUSE_BEFORE) is not None
        clock.advance(24 * HOUR)
    await guide.upkeep()
    assert await guide.store.crawl_get(HOUSE_BEFORE) is None
    await guide.close()


async def test_a_fault_of_ours_with_one_file_is_tried_again_later_and_stops_no_other(
    guide: LocalGuide, clock: ManualClock
) -> None:
    guide.robots.cache.fetched = True
    await define(guide, MINE, robots="obey")
    web = Web(Answer(404), RecursionError())
    tries = []
    for second in range(40):
        await given(guide)
        if not guide.robots.idle:
            await guide.robots.errand(web)
            tries.append(second)
        clock.advance(1.0)
    assert tries == [0, 5, 15, 35]
    web.fault = None
    clock.advance(HOUR)
    await given(guide)
    await guide.robots.errand(web)
    clock.advance(1.0)
    assert await given(guide)


# tenants


@pytest.mark.parametrize("lie", [ALL, NOTHING])
async def test_what_a_tenants_crawler_tells_counts_for_that_tenant_alone(
    guide: LocalGuide, clock: ManualClock, lie: str
) -> None:
    truth = NOTHING if lie == ALL else ALL
    for crawl in (MINE, THEIRS):
        await define(guide, crawl)
        assert await given(guide, crawl) == [FILE]
    await tell(guide, THEIRS, status=200, text=lie)
    assert await given(guide, MINE) == []  # it waits for a file of its own
    await tell(guide, MINE, status=200, text=truth)
    clock.advance(1.0)
    assert (bool(await given(guide, MINE)), bool(await given(guide, THEIRS))) == (truth == NOTHING, lie == NOTHING)


async def test_what_the_guide_fetched_counts_for_all_and_is_newer_than_a_lie(
    guide: LocalGuide, clock: ManualClock
) -> None:
    guide.robots.cache.fetched = True
    for crawl in (MINE, THEIRS):
        await define(guide, crawl, robots="obey")
    await tell(guide, THEIRS, status=200, text=NOTHING)
    assert await given(guide, MINE) == []
    await guide.robots.errand(Web(Answer(200, ALL.encode())))
    assert await given(guide, MINE) == []
    assert await given(guide, THEIRS) == []


async def test_failures_that_a_tenant_tells_of_delay_that_tenant_alone(guide: LocalGuide) -> None:
    for crawl in (MINE, THEIRS):
        await define(guide, crawl)
    await tell(guide, THEIRS, status=503)
    assert await given(guide, MINE) == [FILE]
    await tell(guide, MINE, status=404)
    assert len(await given(guide, MINE)) == 3


async def test_a_pause_that_is_told_holds_everybody_back_for_an_hour_at_most(guide: LocalGuide) -> None:
    for crawl in (MINE, THEIRS):
        await define(guide, crawl, horizon_s=3_600.0)
    await tell(guide, THEIRS, status=200, text="User-agent: *\nCrawl-delay: 86400")
    await tell(guide, MINE, status=200, text=NOTHING)
    await given(guide, THEIRS)
    await given(guide, MINE)
    assert guide.robots.copies.pause_s("a.org", guide.clock.now()) == LONGEST_TOLD_S


def test_of_two_copies_the_one_that_was_read_last_counts_and_the_last_failure() -> None:
    old, new = CachedRobots(b"old", 1.0, 1.0, 0, 1), CachedRobots(b"new", 2.0, 2.0, 0, 1)
    failed = CachedRobots(b"", tried=3.0, failures=2)
    assert newer(old, new) is new
    assert newer(new, old) is new
    assert newer(new, failed) == msgspec.structs.replace(new, tried=3.0, failures=2)


# how long, and how many


@pytest.mark.parametrize("kind", ["memory", "folder"])
async def test_a_file_that_nobody_uses_is_forgotten_after_a_week(clock: ManualClock, tmp_path: Path, kind: str) -> None:
    guide = open_guide(":memory:" if kind == "memory" else tmp_path, Config(), clock)
    await define(guide, MINE)
    fetches = [Fetch(f"https://{number}.org/robots.txt", 200, text=ALL) for number in range(300)]
    await guide.tell(ReportMessage(VERSION, "c-1", fetches, "default"))
    await guide.upkeep()
    last = "https://299.org"
    assert await guide.store.answer_get(house_of("default"), last, clock.now()) is not None
    clock.advance(8 * DAY)
    await guide.upkeep()
    await guide.upkeep()
    assert await guide.store.answer_get(house_of("default"), last, NOW) is None  # also to somebody who is late
    await guide.close()


async def test_only_so_much_is_stored_a_day_and_the_rest_is_fetched_again(
    guide: LocalGuide, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "MOST_BYTES_A_DAY", 1_000)
    await define(guide, MINE)
    for number in range(20):
        fetch = Fetch(f"https://{number}.org/robots.txt", 200, text=ALL)
        await guide.tell(ReportMessage(VERSION, "c-1", [fetch], "default"))
    found = [await guide.store.answer_get(house_of("default"), f"https://{n}.org", clock.now()) for n in range(20)]
    assert 5 < sum(one is not None for one in found) < 20
    clock.advance(DAY)
    await tell(guide, status=200, text=ALL)
    assert await guide.store.answer_get(house_of("default"), ORIGIN, clock.now()) is not None


async def test_memory_for_files_is_bounded_over_all_tenants_and_agents(
    guide: LocalGuide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "MOST_BYTES", 1_000_000)
    kept = guide.robots.copies
    for number in range(300):
        body = b"Disallow: /x\n" * (number % 50)
        await kept.keep(f"https://{number}.org", CachedRobots(body, NOW, NOW, 0, 1, told_by=f"t{number % 7}"))
    assert sum(kept.of(tenant).weight for tenant in (GUIDE, *(f"t{n}" for n in range(7)))) <= 1_000_000
    assert all(kept.of(f"t{number}").weight for number in range(7))  # nobody is left without


async def test_what_a_new_file_permits_waits_again_in_a_crawl_that_was_unloaded(
    clock: ManualClock, tmp_path: Path
) -> None:
    guide = open_guide(tmp_path, Config(crawls=CrawlsOptions(max_loaded=1)), clock)
    other = Crawl("default", "other")
    await define(guide, MINE)
    assert await given(guide) == [FILE]
    await tell(guide, status=200, text=ALL)
    assert await given(guide, most=20) == []
    assert (await guide.store.stats(MINE))["dropped"] == {"robots": 5}
    await define(guide, other)
    await given(guide, other)
    assert MINE not in guide.crawls.known
    clock.advance(DAY)
    await tell(guide, other, status=200, text=NOTHING)
    await guide.upkeep()
    await guide.close()
    guide = open_guide(tmp_path, Config(crawls=CrawlsOptions(max_loaded=1)), clock)
    await given(guide)  # it is in use again
    await guide.upkeep()
    assert (await guide.store.stats(MINE))["dropped"] == {}
    await guide.close()
