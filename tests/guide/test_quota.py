"""Over quota the lowest-ranked are forgotten, and nothing that is on its way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crawlguide import Guide
from crawlguide.core.config import Config, StoreOptions
from crawlguide.testing import ManualClock
from tests.guide.common import UNPACED, A, pages, stats
from tests.support import asked, fetched, state_of, tell

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def small(clock: ManualClock) -> Iterator[Guide]:
    """A guide that remembers five waiting URLs a crawl."""
    with Guide.open(":memory:", clock=clock, config=Config(store=StoreOptions(max_urls=5))) as opened:
        opened.define("default", {"policy": UNPACED})
        yield opened


def ranked(count: int, start: float = 0.1) -> list[str | dict[str, Any]]:
    return [{"url": f"{A}{start:.1f}-{n}", "priority": start + n / 100} for n in range(count)]


def test_over_quota_the_lowest_ranked_are_forgotten(small: Guide) -> None:
    small.seed("default", ranked(8))
    assert sorted(asked(small)) == [f"{A}0.1-{n}" for n in (3, 4, 5, 6, 7)]


def test_over_quota_a_better_url_takes_the_place_of_a_worse_one(small: Guide) -> None:
    small.seed("default", ranked(5))
    small.seed("default", ranked(1, 0.9))
    assert [state_of(small, f"{A}0.1-0"), state_of(small, f"{A}0.9-0")] == ["unknown", "queued"]


def test_over_quota_a_worse_url_does_not_take_the_place_of_a_better_one(small: Guide) -> None:
    small.seed("default", ranked(5, 0.5))
    small.seed("default", ranked(1, 0.1))
    assert state_of(small, f"{A}0.1-0") == "unknown"
    assert stats(small)["queued"] == 5


def test_over_quota_a_leased_url_stays(small: Guide) -> None:
    small.seed("default", ranked(2))
    leased = asked(small)
    small.seed("default", ranked(9, 0.5))
    assert [state_of(small, url) for url in leased] == ["leased", "leased"]


def test_a_url_leased_when_others_were_forgotten_can_be_told(small: Guide) -> None:
    small.seed("default", ranked(2))
    leased = asked(small)
    small.seed("default", ranked(9, 0.5))
    assert tell(small, *(fetched(url) for url in leased))["accepted"] == 2
    assert stats(small)["done"] == 2


def test_what_the_quota_forgot_is_counted(small: Guide) -> None:
    small.seed("default", ranked(8))
    assert stats(small)["evicted"] == 3


def test_over_quota_breadth_first_forgets_what_it_would_fetch_last(small: Guide) -> None:
    small.define("default", {"policy": UNPACED, "strategy": {"kind": "breadth-first"}})
    small.seed("default", list(pages(5)))
    tell(small, fetched("https://b.org/", "https://b.org/new", relevance=1.0))
    assert asked(small) == pages(5)


def test_over_quota_links_of_a_bad_page_are_forgotten_before_those_of_a_good_one(small: Guide) -> None:
    tell(small, fetched(A + "good", *pages(5, A + "good/"), relevance=1.0))
    tell(small, fetched(A + "bad", *pages(5, A + "bad/"), relevance=0.0))
    assert sorted(asked(small)) == pages(5, A + "good/")
