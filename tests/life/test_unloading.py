"""Thousands of crawls in one guide: those that nobody uses are unloaded, and go on as if they never had been."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from crawlguide.core import urls
from crawlguide.core.clock import ManualClock
from crawlguide.core.config import Config, CrawlsOptions
from crawlguide.core.definition import Definition, Goal, Policy
from crawlguide.core.errors import NotFound, RateLimited
from crawlguide.core.messages import VERSION, AskMessage, BudgetMessage, Fetch, Outlink, ReportMessage, SeedsMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway.opening import MEMORY, open_guide

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from crawlguide.guide.local import LocalGuide

MAIN, OTHER = Crawl("default", "main"), Crawl("default", "other")
POLICY = Policy(default_delay_s=0.0, max_per_host=0, robots="ignore", horizon_s=5.0)
GOAL = Goal(topic="red apples", keywords=("apple", "red"))
WORDS = ("apple", "red", "green", "house", "tree", "night", "sea", "page", "map", "war")
STRATEGIES = ("layered", "tres", "bandit", "groups", "ucb", "opic", "pagerank", "scorer", "best-first", "random")


def page_of(url: str) -> Fetch:
    """A made-up page: what it says and links to follows from its URL, some of it in the form of traps."""
    chance = np.random.default_rng(urls.identity(url))
    words = [str(word) for word in chance.choice(WORDS, 6)]
    links = [
        Outlink(f"https://h{number % 4}.org/{words[number % 6]}/{number % 23}{query}", words[number % 5])
        for number, query in zip(
            chance.integers(0, 400, 8).tolist(), ["", "", "", "", "?sort=asc", "?page=2&sid=1", "?a=1&b=2", "?b=2&a=1"],
            strict=True,
        )
    ]  # fmt: skip
    return Fetch(
        url, 200, title=" ".join(words[:3]), text=" ".join(words), relevance=float("apple" in words), outlinks=links
    )


async def crawled(guide: LocalGuide, clock: ManualClock, strategy: str, between: Callable[[], Any]) -> list[Any]:
    """Every answer of a small crawl; `between` is awaited after each step."""
    await guide.define(MAIN, Definition(goal=GOAL, policy=POLICY, strategy={"kind": strategy}))
    await guide.seed(MAIN, SeedsMessage(["https://h0.org/", "https://h1.org/"]))
    given: list[Any] = []
    for number in range(25):
        clock.advance(1.0)
        answer = await guide.ask(AskMessage(VERSION, "c-1", BudgetMessage(6), f"r-{number}", MAIN.name))
        given.append(
            [(one.url, one.score, one.p, one.reason) for one in answer.assigned_urls] + [answer.metadata.dropped]
        )
        await between()
        pages = [page_of(one.url) for one in answer.assigned_urls]
        await guide.tell(ReportMessage(VERSION, "c-1", pages, MAIN.name))
        await between()
    return given


def opened(place: Path | str, clock: ManualClock, most: int) -> LocalGuide:
    return open_guide(place, Config(crawls=CrawlsOptions(max_loaded=most)), clock, seed=7)


async def answers(place: Path | str, strategy: str, most: int, *, unloading: bool) -> list[Any]:
    clock = ManualClock()
    guide = opened(place, clock, most)

    async def use_another() -> None:
        await guide.seed(OTHER, SeedsMessage([f"https://o.org/{clock.now()}"]))
        assert (MAIN in guide.crawls.known) is not unloading

    found = await crawled(guide, clock, strategy, use_another)
    await guide.close()
    return found


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_crawl_that_was_unloaded_between_all_its_requests_gives_the_same_answers(
    strategy: str, tmp_path: Path
) -> None:
    as_ever = await answers(MEMORY, strategy, 10, unloading=False)
    assert sum(map(len, as_ever)) > 60
    assert await answers(MEMORY, strategy, 1, unloading=True) == as_ever
    assert await answers(tmp_path / "data", strategy, 1, unloading=True) == as_ever


async def test_what_was_packed_before_it_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    clock = ManualClock()
    guide = opened(tmp_path / "data", clock, 1)

    async def use_another() -> None:
        await guide.seed(OTHER, SeedsMessage(["https://o.org/"]))

    await crawled(guide, clock, "layered", use_another)
    await guide.store.commit()
    knew = guide.store.state_hash()  # type: ignore[attr-defined]
    await guide.close()
    again = opened(tmp_path / "data", clock, 1)
    assert again.store.state_hash() == knew  # type: ignore[attr-defined]
    await again.close()


async def test_a_crawl_that_was_only_defined_has_no_judges_yet(tmp_path: Path) -> None:
    guide = opened(tmp_path / "data", ManualClock(), 3)
    for number in range(20):
        await guide.define(Crawl("default", f"c{number}"), Definition(goal=GOAL, policy=POLICY))
    assert not guide.crawls.known
    assert (await guide.store.figures())["log_bytes"] < 20_000
    await guide.close()


# how many are loaded


@pytest.fixture
async def guide() -> AsyncIterator[LocalGuide]:
    """One that keeps three crawls loaded."""
    found = opened(MEMORY, ManualClock(), 3)
    yield found
    await found.close()


async def used(guide: LocalGuide, count: int, tenant: str = "default") -> list[Crawl]:
    """So many crawls with a URL each."""
    crawls = [Crawl(tenant, f"crawl {number}") for number in range(count)]
    for number, crawl in enumerate(crawls):
        await guide.seed(crawl, SeedsMessage([f"https://u{number}.org/"]))
    return crawls


async def test_no_more_crawls_are_loaded_than_the_operator_permits(guide: LocalGuide) -> None:
    *_, third, second, last = await used(guide, 20)
    assert list(guide.crawls.known) == [third, second, last]


async def test_the_crawl_that_was_used_the_longest_ago_goes_first(guide: LocalGuide) -> None:
    first, _, third = await used(guide, 3)
    await guide.ask(AskMessage(VERSION, "c-1", BudgetMessage(1), crawl_id=first.name))
    await guide.seed(OTHER, SeedsMessage(["https://o.org/"]))
    assert list(guide.crawls.known) == [third, first, OTHER]


async def test_a_crawl_stays_loaded_while_a_request_is_under_way_with_it(guide: LocalGuide) -> None:
    async with guide.crawls.held(MAIN, 0.0) as active:
        await used(guide, 10)
        assert guide.crawls.known[MAIN] is active
    await used(guide, 3)
    assert MAIN not in guide.crawls.known
    assert not guide.crawls._holders


async def test_a_crawl_that_is_judged_anew_stays_loaded_until_that_is_done(guide: LocalGuide) -> None:
    await guide.seed(MAIN, SeedsMessage([f"https://a.org/{number}" for number in range(100)]))
    (await guide.crawls.get(MAIN, 0.0)).record.renew = ("queued",)
    await used(guide, 10)
    assert MAIN in guide.crawls.known
    await guide.upkeep()
    await used(guide, 10)
    assert MAIN not in guide.crawls.known


async def test_many_crawlers_of_many_crawls_at_once_lose_nothing(guide: LocalGuide) -> None:
    crawls = await used(guide, 12)

    async def work(crawl: Crawl) -> None:
        for _ in range(4):
            answer = await guide.ask(AskMessage(VERSION, "c-1", BudgetMessage(1), crawl_id=crawl.name))
            await asyncio.sleep(0)
            pages = [Fetch(one.url, 200, outlinks=[Outlink(f"{one.url}x")]) for one in answer.assigned_urls]
            await guide.tell(ReportMessage(VERSION, "c-1", pages, crawl.name))
            guide.clock.advance(60.0)  # type: ignore[attr-defined]

    await asyncio.gather(*map(work, crawls))
    stats = (await guide.stats()).crawls
    assert {crawl.name: stats[crawl.name].fetches for crawl in crawls} == {crawl.name: 4 for crawl in crawls}


async def test_looking_at_the_numbers_of_all_crawls_loads_and_unloads_none(guide: LocalGuide) -> None:
    crawls = await used(guide, 10)
    loaded = dict(guide.crawls.known)
    stats = (await guide.stats()).crawls
    assert {name: one.queued for name, one in stats.items()} == {crawl.name: 1 for crawl in crawls}
    assert {one.strategy for one in stats.values()} == {"layered"}
    assert guide.crawls.known == loaded


async def test_what_is_remembered_by_crawl_goes_with_the_crawl(guide: LocalGuide) -> None:
    for crawl in await used(guide, 5):
        await guide.ask(AskMessage(VERSION, "c-1", BudgetMessage(1), crawl_id=crawl.name))
        await guide.ask(AskMessage(VERSION, "c-1", BudgetMessage(1), crawl_id=crawl.name))
        await guide.delete(crawl)
    crawls = guide.crawls
    assert not any([guide.recent, crawls.known, crawls._noted, crawls._before, crawls._undefined["default"]])


# crawls that hold nothing


async def test_a_crawl_that_is_merely_asked_is_there_but_takes_next_to_nothing(tmp_path: Path) -> None:
    guide = opened(tmp_path / "data", ManualClock(), 3)
    for number in range(300):
        answer = await guide.ask(AskMessage(VERSION, "c-1", BudgetMessage(3), crawl_id=f"typo {number}"))
        assert (answer.metadata.crawl_state, answer.metadata.strategy) == ("exhausted", "layered")
    assert not guide.crawls.known
    assert (await guide.store.figures())["columns_bytes"] / 300 < 10_000
    assert (await guide.store.figures())["log_bytes"] / 300 < 1_000
    assert (await guide.stats()).crawls["typo 7"].asks == 1
    await guide.close()
    again = opened(tmp_path / "data", ManualClock(), 3)
    assert len(await again.crawls.names("default")) == 300
    await again.close()


async def test_a_crawl_that_is_asked_first_and_seeded_then_begins_like_any_other(guide: LocalGuide) -> None:
    ask = AskMessage(VERSION, "c-1", BudgetMessage(3), crawl_id=MAIN.name)
    assert not (await guide.ask(ask)).assigned_urls
    await guide.seed(MAIN, SeedsMessage(["https://a.org/"]))
    assert [one.url for one in (await guide.ask(ask)).assigned_urls] == ["https://a.org/"]
    with_seeds = msgspec.json.encode({"mcp_version": VERSION, "crawler_id": "c", "budget": {"max_urls": 1},
                                      "crawl_id": "new", "context": {"seed_urls": ["https://b.org/"]}})  # fmt: skip
    assert len((await guide.ask(msgspec.json.decode(with_seeds, type=AskMessage))).assigned_urls) == 1


def bounded(place: Path | str) -> LocalGuide:
    return open_guide(place, Config(crawls=CrawlsOptions(max_auto_created=5)), ManualClock())


async def asked(guide: LocalGuide, name: str, tenant: str = "default") -> None:
    await guide.ask(AskMessage(VERSION, "c-1", BudgetMessage(1), crawl_id=name), tenant)


async def test_so_many_crawls_may_be_created_automatically(tmp_path: Path) -> None:
    guide = bounded(tmp_path / "data")
    await guide.define(MAIN, Definition(policy=POLICY))
    for number in range(5):
        await asked(guide, f"c{number}")
    with pytest.raises(RateLimited, match="max_auto_created") as refusal:
        await asked(guide, "one more")
    assert (refusal.value.field, refusal.value.retry_after_s) == ("crawl_id", 60.0)
    for doing in (
        guide.tell(ReportMessage(VERSION, "c-1", [Fetch("https://a.org/", 200)], "one more")),
        guide.seed(Crawl("default", "one more"), SeedsMessage(["https://a.org/"])),
    ):
        with pytest.raises(RateLimited):
            await doing
    assert len(await guide.crawls.names("default")) == 6
    await guide.close()
    again = bounded(tmp_path / "data")  # which counts those of before
    with pytest.raises(RateLimited):
        await asked(again, "one more")
    await asked(again, "c3")
    await again.close()


async def test_there_is_room_again_when_one_was_defined_or_deleted() -> None:
    guide = bounded(MEMORY)
    for number in range(5):
        await asked(guide, f"c{number}")
    await guide.define(Crawl("default", "c1"), Definition(policy=POLICY))
    await asked(guide, "c5")
    await guide.delete(Crawl("default", "c2"))
    await asked(guide, "c6")
    with pytest.raises(RateLimited):
        await asked(guide, "c7")
    await asked(guide, "c7", tenant="another")
    await guide.define(Crawl("default", "c7"), Definition(policy=POLICY))
    await guide.close()


async def test_looking_at_a_crawl_that_is_not_there_creates_none(guide: LocalGuide) -> None:
    for looking in (guide.stats(name="none"), guide.release(MAIN, "c-1"), guide.rules(MAIN)):
        with pytest.raises(NotFound):
            await looking
    assert not await guide.crawls.names("default")
