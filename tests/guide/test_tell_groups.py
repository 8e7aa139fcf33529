"""Tells that wait share one pass: it leaves what one tell of all their pages would, and each gets its own answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from crawlguide.core.config import Config, TenantOptions
from crawlguide.core.definition import Definition, Goal
from crawlguide.core.errors import Conflict, NotFound, StorageFull
from crawlguide.core.messages import VERSION, AskMessage, BudgetMessage, Fetch, Outlink, ReportMessage, SeedsMessage
from crawlguide.core.turns import let_others
from crawlguide.core.types import Crawl
from crawlguide.gateway.opening import open_guide
from crawlguide.guide.crawl.quotas import Quotas
from crawlguide.guide.crawl.transfer import exported
from crawlguide.guide.tell import groups
from crawlguide.guide.tell.groups import FEW_WAITING, MOST_PASSES
from crawlguide.guide.tell.portions import MOST_COST, cost_in_group
from crawlguide.store.embedded.disk import Disk
from crawlguide.store.embedded.store import EmbeddedStore
from crawlguide.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from crawlguide.core.messages import Ack
    from crawlguide.guide.local import LocalGuide

CRAWL = Crawl("default", "default")
LINKS = 20
ROBOTS = Fetch("https://h1.org/robots.txt", 200, text="User-agent: *\nDisallow: /private")


def page(number: int, links: int = LINKS, **more: Any) -> Fetch:
    """Some of its links lead to other pages that are told, some to pages of other hosts."""
    outlinks = [Outlink(f"https://h{link % 5}.org/{number + link}", f"word {link % 3}") for link in range(links)]
    given: dict[str, Any] = {"status": 200, "relevance": number % 4 / 4, "title": f"Page {number}"} | more
    return Fetch(f"https://h{number % 7}.org/page/{number}", outlinks=outlinks, **given)


def report(*fetches: Fetch, name: str | None = None, crawler: str = "c-1", crawl: str = "default") -> ReportMessage:
    return ReportMessage(VERSION, crawler, list(fetches), crawl, name)


async def together(guide: LocalGuide, *messages: ReportMessage, tenant: str = "default") -> list[Ack]:
    return await asyncio.gather(*(guide.tell(message, tenant) for message in messages))


async def opened(folder: Path | str, strategy: str = "layered") -> LocalGuide:
    guide = open_guide(folder, Config(), ManualClock(1_000.0))
    await guide.define(CRAWL, Definition(goal=Goal("words of pages"), strategy={"kind": strategy}))
    await guide.seed(CRAWL, SeedsMessage([f"https://h{number}.org/" for number in range(7)]))
    return guide


@pytest.fixture
async def guide() -> AsyncIterator[LocalGuide]:
    found = await opened(":memory:")
    yield found
    await found.close()


async def lines(guide: LocalGuide) -> list[bytes]:
    """All that is known of URLs and links, wherever it lies."""
    return sorted([line async for part in exported(guide, CRAWL) for line in part.splitlines()])


# what is left


async def test_a_group_leaves_what_one_tell_of_all_its_pages_leaves(tmp_path: Path) -> None:
    told = [page(number) for number in range(10)]
    grouped, one = await opened(tmp_path / "grouped"), await opened(tmp_path / "one")
    acks = await together(grouped, *(report(fetch) for fetch in told))
    whole = await one.tell(report(*told))
    assert [result for ack in acks for result in ack.results] == whole.results
    assert (sum(ack.accepted for ack in acks), sum(ack.discovered for ack in acks)) == (10, whole.discovered)
    assert isinstance(grouped.store, EmbeddedStore)
    assert isinstance(one.store, EmbeddedStore)
    assert grouped.store.state_hash() == one.store.state_hash()
    asks = [await guide.ask(AskMessage(VERSION, "c-1", BudgetMessage(50))) for guide in (grouped, one)]
    assert [(url.url, url.score, url.reason) for url in asks[0].assigned_urls] == [
        (url.url, url.score, url.reason) for url in asks[1].assigned_urls
    ]
    assert asks[0].assigned_urls
    await grouped.close()
    await one.close()


async def test_where_nothing_is_learned_it_is_what_tells_one_after_the_other_leave() -> None:
    told = [report(page(number), name=f"r-{number}") for number in range(10)]
    grouped, single = await opened(":memory:", "best-first"), await opened(":memory:", "best-first")
    acks = await together(grouped, *told)
    assert acks == [await single.tell(message) for message in told]
    assert await lines(grouped) == await lines(single)
    assert await grouped.store.stats(CRAWL) == await single.store.stats(CRAWL)


# to each its own


async def test_each_gets_what_came_of_its_own_fetches(guide: LocalGuide) -> None:
    wrong, new = Fetch("not a URL", 200), Fetch("https://h1.org/a", 200, outlinks=[Outlink("/x"), Outlink("/y")])
    same = Fetch("https://h2.org/b", 200, outlinks=[Outlink("https://h1.org/x"), Outlink("/z")])
    once = Fetch("https://h3.org/c", 200, fetch_time="2025-11-03T14:15:00Z")
    acks = await together(guide, report(new), report(wrong, once), report(same, once), report())
    assert [(ack.accepted, ack.discovered) for ack in acks] == [(1, 2), (1, 0), (1, 1), (0, 0)]
    assert [result.reason for result in acks[2].results] == [None, "duplicate"]
    assert [result.url for result in acks[1].results] == ["not a URL", "https://h3.org/c"]


async def test_links_that_are_too_many_are_counted_for_who_told_them(guide: LocalGuide) -> None:
    guide.crawls.quotas = Quotas(guide.store, [TenantOptions(name="default", max_urls=1)])
    acks = await together(guide, report(page(1, links=3)), report(page(2, links=5)))
    assert [ack.truncated for ack in acks] == [3, 5]


async def test_a_lease_is_given_back_by_its_holder_alone(guide: LocalGuide) -> None:
    url = (await guide.ask(AskMessage(VERSION, "c-1", BudgetMessage(1)))).assigned_urls[0].url
    back = Fetch(url, error="released")
    theirs, mine = await together(guide, report(back, crawler="c-2"), report(back))
    assert [ack.results[0].reason for ack in (theirs, mine)] == ["not_leased", None]


async def test_each_is_known_by_its_id(guide: LocalGuide) -> None:
    told = [report(page(number), name=f"r-{number}") for number in range(5)]
    acks = await together(guide, *told)
    before = await guide.store.stats(CRAWL)
    assert await together(guide, *told) == acks
    assert await guide.store.stats(CRAWL) == before


async def test_another_body_under_a_known_id_is_refused_alone(guide: LocalGuide) -> None:
    await guide.tell(report(page(1), name="r-1"))
    told = [report(page(2), name="r-1"), report(page(3), name="r-3")]
    refused, taken = await asyncio.gather(*map(guide.tell, told), return_exceptions=True)
    assert isinstance(refused, Conflict)
    assert not isinstance(taken, BaseException)
    assert taken.accepted == 1


async def test_one_that_cannot_be_read_spoils_no_other(guide: LocalGuide) -> None:
    """No door lets such a one through; the others are taken one by one, each when it is its turn."""
    spoiled = report(page(1, elapsed_ms="soon"))
    first, fault, last = await asyncio.gather(
        *map(guide.tell, (report(page(2)), spoiled, report(page(3)))), return_exceptions=True
    )
    assert isinstance(fault, Exception)
    assert [ack.accepted for ack in (first, last) if not isinstance(ack, BaseException)] == [1, 1]
    assert (await guide.store.stats(CRAWL))["fetches"] == 2


async def test_a_group_that_could_not_be_written_is_acknowledged_to_nobody_and_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide, told = await opened(tmp_path), [report(page(number), name=f"r-{number}") for number in range(5)]

    def full(_disk: Disk, *_arguments: object) -> None:
        raise StorageFull("no room", retry_after_s=5.0)

    with monkeypatch.context() as without_room:
        without_room.setattr(Disk, "write", full)
        refused = await asyncio.gather(*map(guide.tell, told), return_exceptions=True)
    assert all(isinstance(one, StorageFull) for one in refused)
    assert [ack.accepted for ack in await together(guide, *told)] == [1] * 5
    assert (await guide.store.stats(CRAWL))["fetches"] == 5
    await guide.close()


async def test_in_a_crawl_that_is_deleted_meanwhile_nobody_is_heard(guide: LocalGuide) -> None:
    told = [asyncio.ensure_future(guide.tell(report(page(number)), create=False)) for number in range(3)]
    await asyncio.sleep(0)  # they wait for their turn
    await guide.delete(CRAWL)
    assert all(isinstance(one, NotFound) for one in await asyncio.gather(*told, return_exceptions=True))


@pytest.mark.parametrize("turns", [10, 30, 60, 100, 140])
async def test_a_long_tell_writes_nothing_into_the_next_crawl_of_the_name(guide: LocalGuide, turns: int) -> None:
    told = asyncio.ensure_future(guide.tell(report(page(1, links=9_000)), create=False))
    for _ in range(turns):
        await asyncio.sleep(0)
    await guide.delete(CRAWL)
    await guide.define(CRAWL, Definition())
    assert isinstance((await asyncio.gather(told, return_exceptions=True))[0], NotFound)
    numbers = await guide.store.stats(CRAWL)
    assert (numbers["queued"], numbers["fetches"]) == (0, 0)


async def test_who_leaves_in_the_middle_of_a_pass_keeps_nobody_waiting(guide: LocalGuide) -> None:
    gone, *stay = (asyncio.ensure_future(guide.tell(report(page(number)))) for number in range(3))
    async with asyncio.timeout(10):
        while not guide.tells._passes:  # noqa: ASYNC110 - no event tells of it
            await asyncio.sleep(0)
        gone.cancel()
        assert [(await one).accepted for one in stay] == [1, 1]


async def test_what_nobody_waits_for_any_more_before_its_turn_is_not_taken(guide: LocalGuide) -> None:
    gone, stays = (asyncio.ensure_future(guide.tell(report(page(number)))) for number in (1, 2))
    await asyncio.sleep(0)
    gone.cancel()
    assert (await stays).accepted == 1
    assert (await guide.store.stats(CRAWL))["fetches"] == 1


async def test_a_tell_that_may_not_train_is_no_part_of_one_that_may(guide: LocalGuide) -> None:
    judged = page(1, relevance=1.0), page(2, relevance=1.0)
    await asyncio.gather(guide.tell(report(judged[0])), guide.tell(report(judged[1]), trains=False))
    assert (await guide.store.stats(CRAWL))["relevant"] == 1


async def test_a_robots_file_and_what_is_told_beside_it_are_both_taken(guide: LocalGuide) -> None:
    acks = await together(guide, report(page(1)), report(ROBOTS), report(page(2)))
    assert [ack.accepted for ack in acks] == [1, 1, 1]


async def test_what_waits_when_a_guide_is_closed_is_taken_before(tmp_path: Path) -> None:
    guide = await opened(tmp_path)
    told = [asyncio.ensure_future(guide.tell(report(page(number), name=f"r-{number}"))) for number in range(3)]
    await asyncio.sleep(0)
    await guide.close()
    assert [one.result().accepted for one in told] == [1, 1, 1]
    again = open_guide(tmp_path, Config(), ManualClock(1_000.0))
    assert (await again.store.stats(CRAWL))["fetches"] == 3
    await again.close()


# whose turn it is


async def order(guide: LocalGuide, *named: tuple[str, ReportMessage, str]) -> list[str]:
    """Who is answered first."""
    answered: list[str] = []

    async def tell(name: str, message: ReportMessage, tenant: str) -> None:
        await guide.tell(message, tenant)
        answered.append(name)

    await asyncio.gather(*(tell(*one) for one in named))
    return answered


async def test_an_ask_goes_before_tells_that_came_first(guide: LocalGuide) -> None:
    full = MOST_COST // (LINKS + 2)  # of a group
    told = [asyncio.ensure_future(guide.tell(report(page(number)))) for number in range(4 * full)]
    await guide.ask(AskMessage(VERSION, "c-1", BudgetMessage(5), "a-1"))
    assert sum(one.done() for one in told) <= full
    await asyncio.gather(*told)


async def test_a_tell_does_not_stand_in_line_with_those_who_work_long(guide: LocalGuide) -> None:
    turns = 0

    async def works_long() -> None:
        nonlocal turns
        while True:
            await let_others()
            turns += 1

    working = [asyncio.create_task(works_long()) for _ in range(200)]
    try:
        await guide.tell(report(page(1)))
    finally:
        for one in working:
            one.cancel()
    assert turns < 100  # portions of others that went before it: not one of each


async def test_tenants_take_turns_and_so_do_their_crawls() -> None:
    guide, large = await opened(":memory:"), MOST_COST
    for tenant, name in (("t-1", "a"), ("t-1", "b"), ("t-2", "c")):
        await guide.define(Crawl(tenant, name), Definition())
        await guide.crawls.get(Crawl(tenant, name), 1_000.0)
    many = [("t-1", "a", number) for number in range(3)] + [("t-1", "b", number) for number in range(3)]
    waiting = [
        (f"{name}{number}", report(page(number, links=large), crawl=name), tenant)
        for tenant, name, number in (*many, ("t-2", "c", 0))
    ]
    assert await order(guide, *waiting) == ["a0", "c0", "b0", "a1", "b1", "a2", "b2"]
    await guide.close()


def none_wait(guide: LocalGuide) -> bool:
    return not guide.tells.is_crowded("default")


async def test_a_door_is_told_that_one_more_of_a_tenant_would_wait_too_long(guide: LocalGuide) -> None:
    assert none_wait(guide)
    told = [asyncio.ensure_future(guide.tell(report(page(number)))) for number in range(2 * FEW_WAITING)]
    await asyncio.sleep(0)
    guide.tells._each_s = 1.0
    assert guide.tells.is_crowded("default")
    assert not guide.tells.is_crowded("other")
    await asyncio.gather(*told)
    assert none_wait(guide)


async def test_where_the_disk_is_slow_few_passes_wait_for_it_and_the_others_are_a_crowd(tmp_path: Path) -> None:
    guide = await opened(tmp_path)
    told: list[asyncio.Future[Ack]] = []
    goes_on = asyncio.Event()
    commit = guide.store.commit

    async def slow(durable: bool = True) -> None:
        await goes_on.wait()
        await commit(durable)

    guide.store.commit = slow  # type: ignore[method-assign]
    for number in range(MOST_PASSES + 1):
        told += [asyncio.ensure_future(guide.tell(report(page(number, links=MOST_COST))))]
    told += [asyncio.ensure_future(guide.tell(report(page(number)))) for number in range(FEW_WAITING)]
    async with asyncio.timeout(60):
        while len(guide.tells._passes) < MOST_PASSES:  # noqa: ASYNC110 - no event tells of it
            await asyncio.sleep(0)
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(guide.tells._passes) == MOST_PASSES
    guide.tells._each_s = 1.0
    assert guide.tells.is_crowded("default")
    goes_on.set()
    assert all([(await one).accepted == 1 for one in told])
    await guide.close()


def test_robots_files_go_alone() -> None:
    assert cost_in_group([ROBOTS]) == MOST_COST


async def test_a_guide_closes_although_a_tell_never_comes_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "ENDS_WITHIN_S", 0.05)
    guide = await opened(":memory:")

    async def never(*_arguments: object) -> list[Ack]:
        await asyncio.Event().wait()
        return []

    guide.tells._take = never
    told = asyncio.ensure_future(guide.tells.taken(CRAWL, groups.Told("c-1", [page(1)]), True))
    await asyncio.sleep(0)
    await guide.tells.end()
    told.cancel()
    for one in guide.tells._passes:
        one.cancel()
    await guide.close()
