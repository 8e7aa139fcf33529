"""The same request twice: one answer, and nothing is assigned twice."""

from __future__ import annotations

import pytest

from crawlguide import Guide
from crawlguide.core.errors import Conflict
from crawlguide.testing import ManualClock
from tests.guide.common import HOSTS, LEASE_S, A, stats
from tests.support import ask, fetched


def test_the_same_request_gives_the_same_answer(guide: Guide, clock: ManualClock) -> None:
    guide.seed("default", list(HOSTS))
    first = ask(guide, request_id="r-1", max_urls=3)
    clock.advance(20.0)
    assert ask(guide, request_id="r-1", max_urls=3) == first


def test_the_same_request_assigns_nothing_twice(guide: Guide) -> None:
    guide.seed("default", list(HOSTS))
    ask(guide, request_id="r-1", max_urls=3)
    ask(guide, request_id="r-1", max_urls=3)
    assert (stats(guide)["leased"], stats(guide)["assigned"]) == (3, 3)


def test_the_same_request_tells_its_history_once(guide: Guide) -> None:
    for _ in range(2):
        ask(guide, request_id="r-1", recent_history=[fetched(A)])
    assert stats(guide)["fetches"] == 1


def test_the_time_a_crawler_writes_on_its_request_does_not_make_it_another(guide: Guide) -> None:
    guide.seed("default", list(HOSTS))
    first = ask(guide, request_id="r-1", request_timestamp="2025-11-03T14:17:31Z")
    assert ask(guide, request_id="r-1", request_timestamp="2025-11-03T14:17:35Z") == first


def test_the_same_request_id_with_another_body_is_a_conflict(guide: Guide) -> None:
    ask(guide, request_id="r-1", max_urls=3)
    with pytest.raises(Conflict) as refusal:
        ask(guide, request_id="r-1", max_urls=4)
    assert refusal.value.field == "request_id"


def test_a_conflict_assigns_nothing(guide: Guide) -> None:
    guide.seed("default", list(HOSTS))
    ask(guide, request_id="r-1", max_urls=3)
    with pytest.raises(Conflict):
        ask(guide, request_id="r-1", max_urls=4)
    assert stats(guide)["leased"] == 3


def test_an_answer_is_kept_until_ten_minutes_after_its_leases(guide: Guide, clock: ManualClock) -> None:
    ask(guide, request_id="r-1", max_urls=3)
    clock.advance(LEASE_S + 599.0)
    with pytest.raises(Conflict):
        ask(guide, request_id="r-1", max_urls=4)


def test_an_answer_is_forgotten_after_that(guide: Guide, clock: ManualClock) -> None:
    ask(guide, request_id="r-1", max_urls=3)
    clock.advance(LEASE_S + 601.0)
    assert ask(guide, request_id="r-1", max_urls=4)["metadata"]["num_queries_completed"] == 2


def test_request_ids_of_different_crawls_do_not_meet(guide: Guide) -> None:
    ask(guide, request_id="r-1", max_urls=3, crawl_id="one")
    assert ask(guide, request_id="r-1", max_urls=4, crawl_id="two")["metadata"]["request_id"] == "r-1"
