"""Fetches of one host are a delay apart, over the whole fleet."""

from __future__ import annotations

import random

import numpy as np
import pytest

from crawlguide import Guide
from crawlguide.testing import ManualClock
from tests.guide.common import HOSTS, LEASE_S, A, pages
from tests.support import ask, asked, fetched, tell


def instants(guide: Guide, clock: ManualClock, steps: list[float], crawls: list[str]) -> list[float]:
    """When each URL may be fetched, as many crawlers of several crawls are told while time goes on."""
    found = []
    for number, step in enumerate(steps):
        answer = ask(guide, f"c-{number}", 3, crawl_id=crawls[number % len(crawls)])
        found += [clock.now() + given_out["not_before_ms"] / 1_000 for given_out in answer["assigned_urls"]]
        clock.advance(step)
    return sorted(found)


@pytest.mark.parametrize("delay", [0.5, 1.0, 2.0, 7.0])
def test_fetches_of_one_host_are_a_delay_apart_over_many_crawlers(
    guide: Guide, clock: ManualClock, delay: float
) -> None:
    guide.define("default", {"policy": {"default_delay_s": delay}})
    guide.seed("default", list(pages(200)))
    found = instants(guide, clock, [0.0, 0.25, 0.0, 1.5, 0.125, 3.0] * 6, ["default"])
    assert len(found) >= 5
    assert np.diff(found).min() >= delay


def test_fetches_of_one_host_are_a_delay_apart_over_several_crawls(guide: Guide, clock: ManualClock) -> None:
    for crawl in ("one", "two", "three"):
        guide.seed(crawl, list(pages(100)))
    found = instants(guide, clock, [0.0, 0.25, 0.0, 1.5, 0.125, 3.0] * 6, ["one", "two", "three"])
    assert len(found) >= 5
    assert np.diff(found).min() >= 1.0


def test_fetches_of_one_host_are_a_delay_apart_however_odd_the_times_of_the_asks(
    guide: Guide, clock: ManualClock
) -> None:
    guide.seed("default", list(pages(200)))
    chance = random.Random(1)
    found = instants(guide, clock, [chance.random() for _ in range(60)], ["default"])
    assert len(found) > 20
    assert np.diff(found).min() >= 1.0 - 1e-6  # a double holds an instant of our days to a quarter of a microsecond


def test_hosts_do_not_wait_for_each_other(guide: Guide) -> None:
    guide.seed("default", list(HOSTS))
    assert [given_out["not_before_ms"] for given_out in ask(guide)["assigned_urls"]] == [0] * 10


def test_ports_of_one_host_are_different_queues(guide: Guide) -> None:
    guide.seed("default", ["https://a.org/", "https://a.org:8443/"])
    assert [given_out["not_before_ms"] for given_out in ask(guide)["assigned_urls"]] == [0, 0]


def test_without_a_delay_everything_may_start_at_once(unpaced: Guide) -> None:
    unpaced.seed("default", list(pages(10)))
    assert [given_out["not_before_ms"] for given_out in ask(unpaced)["assigned_urls"]] == [0] * 10


def test_no_host_gives_more_than_max_per_host_to_one_answer(guide: Guide) -> None:
    guide.define("default", {"policy": {"default_delay_s": 0, "max_per_host": 2}})
    guide.seed("default", pages(10) + pages(10, "https://b.org/"))
    given_out = asked(guide)
    assert len(given_out) == 4
    assert sum(url.startswith(A) for url in given_out) == 2


def test_what_politeness_holds_back_is_deferred_with_its_wait(guide: Guide) -> None:
    guide.define("default", {"policy": {"default_delay_s": 4}})
    guide.seed("default", list(pages(3)))
    answer = ask(guide)
    assert len(answer["assigned_urls"]) == 2
    assert answer["deferred"] == [{"url": A + "2", "retry_after_ms": 8_000, "reason": "politeness"}]


@pytest.fixture
def strict(guide: Guide) -> Guide:
    guide.define("default", {"policy": {"default_delay_s": 1, "strict": True}})
    guide.seed("default", list(pages(3)))
    return guide


def test_strict_gives_one_url_of_a_host(strict: Guide) -> None:
    assert len(asked(strict)) == 1


def test_strict_gives_no_other_while_the_first_is_on_its_way(strict: Guide, clock: ManualClock) -> None:
    asked(strict, "c-1")
    clock.advance(100.0)
    assert asked(strict, "c-2") == []


def test_strict_gives_the_next_after_the_first_was_reported(strict: Guide, clock: ManualClock) -> None:
    first = asked(strict, "c-1")
    clock.advance(1.0)
    tell(strict, fetched(first[0]))
    assert len(asked(strict, "c-2")) == 1


def test_strict_gives_the_next_after_the_first_expired(strict: Guide, clock: ManualClock) -> None:
    asked(strict, "c-1")
    clock.advance(LEASE_S)
    assert len(asked(strict, "c-2")) == 1


def test_strict_gives_the_next_after_the_first_was_released(strict: Guide, clock: ManualClock) -> None:
    first = asked(strict, "c-1")
    clock.advance(1.0)
    tell(strict, {"url": first[0], "error": "released"}, crawler_id="c-1")
    assert len(asked(strict, "c-2")) == 1


def test_strict_holds_over_the_crawls_of_a_deployment(guide: Guide) -> None:
    for crawl in ("one", "two"):
        guide.define(crawl, {"policy": {"default_delay_s": 0, "strict": True}})
        guide.seed(crawl, [A])
    asked(guide, crawl_id="one")
    assert asked(guide, crawl_id="two") == []


def test_retry_after_is_obeyed_for_the_whole_host(unpaced: Guide, clock: ManualClock) -> None:
    unpaced.seed("default", list(pages(3)))
    tell(unpaced, fetched(A + "0", status=503, retry_after_s=30))
    clock.advance(24.0)
    assert asked(unpaced) == []
    clock.advance(6.0)
    assert sorted(asked(unpaced)) == pages(3)


def test_retry_after_of_one_host_does_not_hold_another(unpaced: Guide) -> None:
    unpaced.seed("default", [A, "https://b.org/"])
    tell(unpaced, fetched(A, status=503, retry_after_s=30))
    assert asked(unpaced) == ["https://b.org/"]


def test_retry_after_binds_every_crawl_of_the_deployment(guide: Guide) -> None:
    guide.seed("one", [A])
    guide.seed("two", [A + "1"])
    tell(guide, fetched(A, status=429, retry_after_s=30), crawl_id="one")
    assert asked(guide, crawl_id="two") == []


def test_too_many_requests_make_the_whole_host_wait(unpaced: Guide) -> None:
    unpaced.seed("default", list(pages(3)))
    tell(unpaced, fetched(A + "0", status=429))
    assert all(given_out["not_before_ms"] > 0 for given_out in ask(unpaced)["assigned_urls"])


def test_too_many_requests_again_make_the_host_wait_longer(unpaced: Guide, clock: ManualClock) -> None:
    unpaced.seed("default", list(pages(30)))
    waits = []
    for number in range(4):
        tell(unpaced, fetched(f"{A}{number}", status=429))
        waits.append(_wait(unpaced, clock))
    assert waits[0] < waits[1] < waits[2] < waits[3]


def _wait(guide: Guide, clock: ManualClock) -> float:
    """Seconds until the host may be fetched, after which they have passed."""
    waited = 0.0
    while not (given_out := ask(guide, max_urls=1)["assigned_urls"]):
        clock.advance(0.5)
        waited += 0.5
    clock.advance(given_out[0]["not_before_ms"] / 1_000)
    return float(waited + given_out[0]["not_before_ms"] / 1_000)
