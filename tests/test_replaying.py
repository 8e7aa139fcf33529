"""An answer that is told a second time: the same to the letter, and what follows waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crawlguide import Guide
from crawlguide.testing import ManualClock
from tests.support import NOW, ask, fetched, store_of, tell

if TYPE_CHECKING:
    from collections.abc import Iterator

A, B = "https://a.org/", "https://b.org/"
PAGES = [f"{A}{number}" for number in range(6)]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def guide(clock: ManualClock) -> Iterator[Guide]:
    with Guide.open(":memory:", clock=clock) as opened:
        opened.define("default", {"policy": {"robots": "ignore", "default_delay_s": 1, "traps": False}})
        opened.seed("default", PAGES)
        yield opened


def instants(answer: dict[str, Any], clock: ManualClock) -> list[float]:
    """When the fetches of an answer begin if it arrives now, in seconds from the beginning."""
    return sorted(clock.now() - NOW + one["not_before_ms"] / 1_000 for one in answer["assigned_urls"])


def test_it_is_the_same_answer_waits_included(guide: Guide, clock: ManualClock) -> None:
    first = ask(guide, max_urls=3, request_id="r-1")
    clock.advance(2.5)
    assert ask(guide, max_urls=3, request_id="r-1") == first


def test_what_follows_on_its_hosts_waits_for_it(guide: Guide, clock: ManualClock) -> None:
    ask(guide, max_urls=3, request_id="r-1")
    clock.advance(2.5)
    again = instants(ask(guide, max_urls=3, request_id="r-1"), clock)
    assert again == [2.5, 3.5, 4.5]
    assert instants(ask(guide, crawler_id="c-2", max_urls=1), clock) == [5.5]


def test_without_it_the_next_slot_is_the_next_slot(guide: Guide, clock: ManualClock) -> None:
    ask(guide, max_urls=3, request_id="r-1")
    clock.advance(2.5)
    assert instants(ask(guide, crawler_id="c-2", max_urls=1), clock) == [3.0]


def test_what_was_told_meanwhile_is_not_waited_for(guide: Guide, clock: ManualClock) -> None:
    first = ask(guide, max_urls=3, request_id="r-1")
    tell(guide, *(fetched(one["url"]) for one in first["assigned_urls"]))
    clock.advance(2.5)
    ask(guide, max_urls=3, request_id="r-1")
    assert instants(ask(guide, crawler_id="c-2", max_urls=1), clock) == [3.0]


def test_a_longer_block_stays(guide: Guide, clock: ManualClock) -> None:
    ask(guide, max_urls=1, request_id="r-1")
    guide._run(store_of(guide).control("a.org", block_until=NOW + 4.0))
    clock.advance(0.5)
    ask(guide, max_urls=1, request_id="r-1")
    assert instants(ask(guide, crawler_id="c-2", max_urls=1), clock) == [4.0]


def test_other_hosts_do_not_wait(guide: Guide, clock: ManualClock) -> None:
    ask(guide, max_urls=3, request_id="r-1")
    guide.seed("default", [B])
    clock.advance(2.5)
    ask(guide, max_urls=3, request_id="r-1")
    found = {one["url"]: one["not_before_ms"] for one in ask(guide, crawler_id="c-2")["assigned_urls"]}
    assert found[B] == 0


def test_where_there_is_no_pacing_nothing_waits(clock: ManualClock) -> None:
    with Guide.open(":memory:", clock=clock) as guide:
        guide.define("default", {"policy": {"robots": "ignore", "default_delay_s": 0, "traps": False}})
        guide.seed("default", PAGES)
        ask(guide, max_urls=3, request_id="r-1")
        ask(guide, max_urls=3, request_id="r-1")
        assert instants(ask(guide, crawler_id="c-2"), clock) == [0.0, 0.0, 0.0]
