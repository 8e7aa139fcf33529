"""Corners of the guide that were wrong once."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytest

from crawlguide import Guide
from crawlguide.core.config import Config, GuideOptions
from crawlguide.core.errors import ConfigError, MalformedRequest
from crawlguide.core.types import Crawl
from crawlguide.testing import ManualClock
from tests.support import ask, asked, fetched, store_of, tell

if TYPE_CHECKING:
    from crawlguide.core.tables import Mask
    from crawlguide.core.types import Ask, Batch


def test_a_domain_whose_pages_failed_is_not_full_for_ever(clock: ManualClock) -> None:
    with Guide.open(clock=clock) as guide:
        guide.define("default", {"policy": {"domain_max_pages": 2, "default_delay_s": 0, "robots": "ignore"}})
        guide.seed("default", [f"https://a.org/{n}" for n in range(6)])
        first = asked(guide)
        assert len(first) == 2
        assert asked(guide) == []
        tell(guide, *(fetched(url, status=404) for url in first))
        assert len(asked(guide)) == 2


def test_pages_that_never_came_back_do_not_count_against_the_limit(clock: ManualClock) -> None:
    with Guide.open(clock=clock) as guide:
        guide.define("default", {"limits": {"max_pages": 1}})
        guide.seed("default", ["https://a.org/1", "https://a.org/2"])
        assert len(asked(guide)) == 1
        clock.advance(86_400.0)
        assert len(asked(guide)) == 1


def test_answers_that_ended_do_not_pile_up(clock: ManualClock) -> None:
    with Guide.open(clock=clock) as guide:
        for number in range(200):
            ask(guide, request_id=str(number))
            clock.advance(3_600.0)
        assert len(store_of(guide).crawls[Crawl("default", "default")].answers) < 10  # type: ignore[attr-defined]


def test_the_focus_counts_however_large_the_frontier_is(clock: ManualClock) -> None:
    with Guide.open(clock=clock) as guide:
        guide.seed("default", [f"https://h{n}.org/" for n in range(1_000)] + ["https://focus.org/deep"])
        first = ask(guide, max_urls=3, seed_urls=["https://focus.org/"])["assigned_urls"]
        assert {given["url"] for given in first} >= {"https://focus.org/deep", "https://focus.org/"}


def test_strictly_busy_hosts_do_not_hide_free_ones(clock: ManualClock) -> None:
    with Guide.open(clock=clock) as guide:
        guide.define("default", {"policy": {"strict": True, "default_delay_s": 0, "robots": "ignore"}})
        guide.seed("default", [{"url": f"https://busy{n}.org/1", "priority": 0.9} for n in range(700)])
        assert len(asked(guide, max_urls=700)) == 700
        guide.seed("default", [{"url": f"https://busy{n}.org/2", "priority": 0.9} for n in range(700)])
        guide.seed("default", [{"url": f"https://free{n}.org/", "priority": 0.1} for n in range(10)])
        assert sorted(asked(guide)) == sorted(f"https://free{n}.org/" for n in range(10))


def test_never_more_urls_than_asked_for_whatever_the_filters(clock: ManualClock) -> None:
    config = Config(guide=GuideOptions(filters=("seen",)))
    with Guide.open(clock=clock, config=config) as guide:
        guide.seed("default", [f"https://h{n}.org/" for n in range(50)])
        assert len(asked(guide, max_urls=3)) == 3


def test_a_host_with_a_dot_at_its_end_is_the_same_host(clock: ManualClock) -> None:
    with Guide.open(clock=clock) as guide:
        guide.seed("default", ["https://a.org/1", "https://a.org./2"])
        assert sorted(given["not_before_ms"] for given in ask(guide)["assigned_urls"]) == [0, 1_000]


def test_a_status_of_zero_is_no_answer(clock: ManualClock) -> None:
    with Guide.open(clock=clock) as guide:
        tell(guide, fetched("https://a.org/", status=0))
        assert guide.stats()["crawls"]["default"]["failed"] == 1


def test_the_order_of_keys_does_not_make_another_request(clock: ManualClock) -> None:
    with Guide.open(clock=clock) as guide:
        first = ask(guide, request_id="r", metadata={"a": 1, "b": 2})
        assert ask(guide, request_id="r", metadata={"b": 2, "a": 1}) == first


def test_a_goal_says_nothing_of_a_page_nobody_read(clock: ManualClock) -> None:
    with Guide.open(clock=clock) as guide:
        guide.define("default", {"goal": {"topic": "databases"}, "strategy": {"kind": "relational"}})
        tell(guide, fetched("https://a.org/", "https://a.org/1"))
        assert ask(guide)["assigned_urls"][0]["p"] == pytest.approx((0.5 + 0.5) / (1 + 2))


def test_a_bound_on_depth_that_was_lowered_holds_for_what_waits(clock: ManualClock) -> None:
    with Guide.open(clock=clock) as guide:
        tell(guide, fetched("https://a.org/", "https://b.org/"))
        tell(guide, fetched("https://b.org/", "https://c.org/"))
        guide.define("default", {"limits": {"max_depth": 1}})
        assert asked(guide) == []


def test_what_cannot_be_built_is_said_at_the_start() -> None:
    with pytest.raises(ConfigError, match=r"guide.filters"):
        Guide.open(config=Config(guide=GuideOptions(filters=("sen",))))


@dataclass
class Closed:
    """An operator's own filter, of which its module says whether what it forbids may return."""

    revivable: bool
    closed: ClassVar = True
    name: str = "own.closed"
    refusal: str = "forbid"

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        return np.array([not (self.closed and url.endswith("/late")) for url in batch.url.tolist()], np.bool_)

    def why(self, batch: Batch, ask: Ask) -> str:
        return "closed"


@pytest.mark.parametrize("revivable", [True, False])
def test_what_a_filter_forbade_returns_with_a_new_link_if_the_filter_says_so(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch, revivable: bool
) -> None:
    own, late = ModuleType("own.closed"), "https://a.org/late"
    own.build = lambda _: Closed(revivable)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "own", ModuleType("own"))
    monkeypatch.setitem(sys.modules, "own.closed", own)
    with Guide.open(clock=clock, config=Config(guide=GuideOptions(filters=("seen", "own.closed")))) as guide:
        guide.seed("default", [late])
        assert asked(guide) == []
        monkeypatch.setattr(Closed, "closed", False)
        tell(guide, fetched("https://b.org/", late))
        assert asked(guide) == [late] * revivable


def test_a_closed_guide_says_so() -> None:
    guide = Guide.open()
    guide.close()
    with pytest.raises(RuntimeError, match="closed"):
        guide.stats()


def test_a_crawl_name_that_http_could_not_carry_is_refused_by_the_library_too() -> None:
    with Guide.open() as guide, pytest.raises(MalformedRequest, match="crawl_id"):
        guide.seed("a/b", [])


def test_every_url_dropped_for_good_is_counted_however_often_the_guide_looks(clock: ManualClock) -> None:
    with Guide.open(clock=clock) as guide:
        guide.seed("default", [f"https://h{n}.bad.org/" for n in range(300)] + ["https://good.org/"])
        guide.define("default", {"policy": {"deny_domains": ["bad.org"]}})
        answer = ask(guide)
        assert [given["url"] for given in answer["assigned_urls"]] == ["https://good.org/"]
        assert answer["metadata"]["dropped"] == guide.stats()["crawls"]["default"]["dropped"] == {"scope": 300}
