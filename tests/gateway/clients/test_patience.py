"""How long a client waits between tries, and in all."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import Any

import pytest

from crawlguide import AsyncClient, Client
from crawlguide.core import errors
from crawlguide.core.clock import retry_after_s
from crawlguide.core.errors import CrawlGuideError, RateLimited, UnavailableError
from crawlguide.gateway.client.over_http import timeout
from crawlguide.gateway.client.patience import Patience, Tries


class Clock:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def waits(patience: Patience, problem: CrawlGuideError, clock: Clock) -> list[float]:
    """All waits until it is given up."""
    tries, found = Tries(patience), list[float]()
    try:
        while True:
            found.append(tries.wait_s(problem))
            clock.at += found[-1]
    except CrawlGuideError:
        return found


def test_waits_double_up_to_ten_seconds() -> None:
    clock = Clock()
    patience = Patience(retries=8, deadline_s=1_000, clock=clock, chance=lambda: 1.0)
    assert waits(patience, UnavailableError("busy"), clock) == [0.5, 1, 2, 4, 8, 10, 10, 10]


def test_chance_takes_up_to_half_of_a_wait() -> None:
    clock = Clock()
    patience = Patience(retries=3, deadline_s=1_000, clock=clock, chance=lambda: 0.0)
    assert waits(patience, UnavailableError("busy"), clock) == [0.25, 0.5, 1]


def test_what_the_guide_asks_for_comes_on_top() -> None:
    clock = Clock()
    patience = Patience(retries=2, deadline_s=1_000, clock=clock, chance=lambda: 1.0)
    assert waits(patience, RateLimited("slow down", retry_after_s=30), clock) == [30.5, 31]
    assert waits(patience, RateLimited("slow down", retry_after_s=-30), clock) == [0.5, 1]


def test_no_wait_ends_after_the_deadline() -> None:
    clock = Clock()
    patience = Patience(retries=100, deadline_s=60, clock=clock, chance=lambda: 1.0)
    assert sum(waits(patience, UnavailableError("busy"), clock)) < 60


def test_no_try_may_last_beyond_the_deadline() -> None:
    clock = Clock()
    tries = Tries(Patience(timeout_s=30, deadline_s=60, clock=clock))
    assert (timeout(tries).read, timeout(tries).connect) == (30, 5)
    clock.at = 57.0
    assert (timeout(tries).read, timeout(tries).connect) == (3, 3)


@pytest.mark.parametrize(
    ("text", "seconds"), [("3", 3.0), (" 0 ", 0.0), (None, None), ("", None), ("-3", None), ("soon", None)]
)
def test_retry_after_is_read(text: str | None, seconds: float | None) -> None:
    assert retry_after_s(text) == seconds


def test_retry_after_may_be_a_date() -> None:
    assert retry_after_s(formatdate(time.time() + 100, usegmt=True)) == pytest.approx(100, abs=5)
    assert retry_after_s(formatdate(time.time() - 100)) == 0.0


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"url": "127.0.0.1:8080"}, "^url: expected one such as http"),
        ({"url": "ftp://a.example"}, "^url: "),
        ({"retries": -1}, "^retries: "),
        ({"timeout_s": 0}, "^timeout_s: "),
        ({"deadline_s": float("nan")}, "^deadline_s: "),
    ],
)
def test_an_option_that_cannot_work_is_named(options: dict[str, Any], named: str) -> None:
    for client in (Client, AsyncClient):
        with pytest.raises(errors.ConfigError, match=named):
            client(**{"url": "http://127.0.0.1:8080"} | options)
