"""How fast a host is asked: the longest of all wishes counts, whoever comes last; and a wish ends with its cause."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from crawlguide import Guide
from crawlguide.testing import ManualClock
from tests.support import NOW, ask, fetched, store_of, tell

if TYPE_CHECKING:
    from pathlib import Path

FILE = "https://a.org/robots.txt"


def crawl(guide: Guide, name: str, delay_s: float, **policy: Any) -> None:
    policy = {"robots": "crawler", "horizon_s": 600.0, "max_per_host": 0, "delay_factor": 0, **policy}
    guide.define(name, {"policy": {**policy, "default_delay_s": delay_s}})
    guide.seed(name, [f"https://a.org/{name}/{number}" for number in range(50)])


def robots(guide: Guide, name: str, text: str, status: int = 200, at: str = "") -> None:
    tell(guide, {"url": FILE, "status": status, "text": text, "fetch_time": at or None}, crawl_id=name)


def starts(guide: Guide, name: str, count: int) -> list[float]:
    """Seconds until the next URLs."""
    found = ask(guide, crawl_id=name, max_urls=count, timeout_ms=600_000)["assigned_urls"]
    return [one["not_before_ms"] / 1_000 for one in found]


def gap(guide: Guide, name: str) -> float:
    """Seconds between two URLs of one answer."""
    first, second = starts(guide, name, 2)
    return second - first


def wait(guide: Guide, name: str) -> float:
    return starts(guide, name, 1)[0]


@pytest.mark.parametrize("order", list(permutations(["slow", "quick", "usual"])))
def test_no_crawl_lowers_the_delay_of_another_whoever_meets_the_host_first(guide: Guide, order: list[str]) -> None:
    delays = {"slow": 20.0, "quick": 0.0, "usual": 1.0}
    for name in order:
        crawl(guide, name, delays[name])
        robots(guide, name, "User-agent: *\nCrawl-delay: 5")
        ask(guide, crawl_id=name, max_urls=1)
    assert {name: gap(guide, name) for name in order} == {"slow": 20.0, "quick": 5.0, "usual": 5.0}


def test_after_a_restart_as_well(tmp_path: Path, clock: ManualClock) -> None:
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        crawl(guide, "slow", 20.0)
        crawl(guide, "quick", 0.0)
        robots(guide, "slow", "User-agent: *\nCrawl-delay: 5")
        assert gap(guide, "slow") == 20.0
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        assert gap(guide, "quick") == 5.0
        assert gap(guide, "slow") == 20.0


def test_a_crawl_may_lower_its_own_delay(guide: Guide) -> None:
    crawl(guide, "one", 20.0)
    robots(guide, "one", "User-agent: *\nCrawl-delay: 2")
    assert gap(guide, "one") == 20.0
    crawl(guide, "one", 1.0)
    assert gap(guide, "one") == 2.0


@pytest.mark.parametrize("agents", [("quick", "slow"), ("slow", "quick")])
def test_of_what_a_file_asks_of_two_agents_the_longer_counts_for_the_host(
    guide: Guide, agents: tuple[str, str]
) -> None:
    text = "User-agent: slow\nCrawl-delay: 9\n\nUser-agent: quick\nCrawl-delay: 2"
    for agent in agents:
        crawl(guide, agent, 0.0, user_agent=agent)
        robots(guide, agent, text)
        ask(guide, crawl_id=agent, max_urls=1)
    assert (gap(guide, "slow"), gap(guide, "quick")) == (9.0, 9.0)


def test_a_pause_ends_with_the_file_that_asked_for_it(guide: Guide, clock: ManualClock) -> None:
    crawl(guide, "one", 1.0)
    robots(guide, "one", "User-agent: *\nCrawl-delay: 500")
    assert gap(guide, "one") == 500.0
    clock.advance(1_000.0)
    robots(guide, "one", "User-agent: *\nDisallow:", at="2")
    clock.advance(30.0)
    assert gap(guide, "one") == 1.0


@pytest.mark.parametrize("text", ["User-agent: *\nCrawl-delay: 2", "", "User-agent: *\nDisallow: /x"])
@pytest.mark.parametrize("before", [True, False])
def test_no_robots_txt_shortens_what_a_host_asked_for_by_retry_after(guide: Guide, text: str, before: bool) -> None:
    crawl(guide, "one", 1.0)
    if before:
        robots(guide, "one", text)
    tell(guide, {"url": "https://a.org/busy", "status": 503, "retry_after_s": 300}, crawl_id="one")
    robots(guide, "one", text, at="2")
    assert wait(guide, "one") == 300.0


def test_nor_does_an_answer_that_is_told_again(guide: Guide, clock: ManualClock) -> None:
    crawl(guide, "one", 1.0, robots="ignore")
    ask(guide, crawl_id="one", max_urls=1, request_id="r-1")
    tell(guide, {"url": "https://a.org/busy", "status": 429, "retry_after_s": 300}, crawl_id="one")
    clock.advance(10.0)
    ask(guide, crawl_id="one", max_urls=1, request_id="r-1")
    assert wait(guide, "one") == 290.0


def test_only_the_operator_shortens(guide: Guide) -> None:
    crawl(guide, "one", 1.0, robots="ignore")
    tell(guide, {"url": "https://a.org/busy", "status": 429, "retry_after_s": 300}, crawl_id="one")
    guide._run(store_of(guide).hold("a.org", until=NOW + 2.0, delay_s=3.0))
    guide._run(store_of(guide).hold("a.org", delay_s=1.0))
    assert wait(guide, "one") == 300.0
    guide._run(store_of(guide).control("a.org", block_until=0.0, delay_s=4.0))
    guide._run(store_of(guide).hold("a.org", delay_s=2.0))
    tell(guide, fetched("https://a.org/one/0"), crawl_id="one")
    assert gap(guide, "one") == 4.0
