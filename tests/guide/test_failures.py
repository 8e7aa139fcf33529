"""Passing failures are tried again, later each time; others are done."""

from __future__ import annotations

from typing import Any

import pytest

from crawlguide import Guide
from crawlguide.testing import ManualClock
from tests.guide.common import UNPACED, A, pages, seconds_until_given, stats
from tests.support import asked, fetched, state_of, tell

PASSING: list[dict[str, Any]] = [
    {"error": "timeout"}, {"error": "dns"}, {"error": "connect"}, {"status": 429}, {"status": 500}, {"status": 503},
]  # fmt: skip
FINAL: list[dict[str, Any]] = [
    {"error": "tls"}, {"error": "too_large"}, {"error": "blocked"}, {"error": "other"},
    {"status": 400}, {"status": 403}, {"status": 404}, {"status": 410}, {"status": 451},
]  # fmt: skip


@pytest.mark.parametrize("failure", PASSING, ids=str)
def test_a_passing_failure_is_queued_again(unpaced: Guide, failure: dict[str, Any]) -> None:
    tell(unpaced, fetched(A, **failure))
    assert state_of(unpaced, A) == "queued"


@pytest.mark.parametrize("failure", PASSING, ids=str)
def test_a_passing_failure_is_tried_again_but_not_at_once(
    unpaced: Guide, clock: ManualClock, failure: dict[str, Any]
) -> None:
    tell(unpaced, fetched(A, **failure))
    assert seconds_until_given(unpaced, clock, A) >= 1


@pytest.mark.parametrize("failure", PASSING, ids=str)
def test_each_further_try_waits_longer(unpaced: Guide, clock: ManualClock, failure: dict[str, Any]) -> None:
    waits = []
    for _ in range(3):
        tell(unpaced, fetched(A, **failure))
        waits.append(seconds_until_given(unpaced, clock, A))
    assert waits[0] < waits[1] < waits[2]


@pytest.mark.parametrize("failure", PASSING, ids=str)
def test_after_max_retries_a_url_is_done(guide: Guide, clock: ManualClock, failure: dict[str, Any]) -> None:
    guide.define("default", {"policy": UNPACED | {"max_retries": 2}})
    states = []
    for _ in range(3):
        tell(guide, fetched(A, **failure))
        states.append(state_of(guide, A))
    assert states == ["queued", "queued", "done"]
    assert stats(guide)["failed"] == 3


def test_without_retries_a_failure_is_done_at_once(guide: Guide) -> None:
    guide.define("default", {"policy": {"max_retries": 0}})
    tell(guide, fetched(A, error="timeout"))
    assert state_of(guide, A) == "done"


def test_a_url_that_failed_for_good_is_never_given_again(unpaced: Guide, clock: ManualClock) -> None:
    for _ in range(4):
        tell(unpaced, fetched(A, error="timeout"))
    clock.advance(86_400.0)
    assert asked(unpaced) == []


def test_a_success_after_a_failure_is_done(unpaced: Guide, clock: ManualClock) -> None:
    tell(unpaced, fetched(A, error="timeout"))
    seconds_until_given(unpaced, clock, A)
    tell(unpaced, fetched(A))
    assert state_of(unpaced, A) == "done"


@pytest.mark.parametrize("failure", FINAL, ids=str)
def test_any_other_failure_is_done_at_once(unpaced: Guide, failure: dict[str, Any]) -> None:
    tell(unpaced, fetched(A, **failure))
    assert (state_of(unpaced, A), stats(unpaced)["failed"]) == ("done", 1)


def test_a_failed_fetch_of_a_dropped_url_leaves_the_count_of_dropped_urls_right(guide: Guide) -> None:
    guide.define("default", {"policy": {"deny_domains": ["b.org"]}})
    tell(guide, fetched(A, "https://b.org/"))
    tell(guide, fetched("https://b.org/", error="timeout"))
    dropped = 1 if state_of(guide, "https://b.org/") == "dropped" else 0
    assert sum(stats(guide)["dropped"].values()) == dropped


def test_an_unreliable_host_is_left_alone_and_then_probed(guide: Guide, clock: ManualClock) -> None:
    guide.define("default", {"policy": UNPACED | {"max_retries": 0}})
    guide.seed("default", list(pages(12)))
    for url in asked(guide, max_urls=10):
        tell(guide, fetched(url, error="connect"))
    assert asked(guide) == []
    clock.advance(601.0)
    assert len(asked(guide)) >= 1
