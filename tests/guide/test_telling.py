"""What a crawler tells counts once, and whatever cannot be used is said by name."""

from __future__ import annotations

import pytest

from crawlguide import Guide
from crawlguide.core.errors import Conflict
from crawlguide.testing import ManualClock
from tests.guide.common import A, pages, stats
from tests.support import ask, asked, fetched, state_of, tell


def test_a_told_page_is_done_and_its_links_are_queued(guide: Guide) -> None:
    ack = tell(guide, fetched(A, A + "1", "https://b.org/"))
    assert (ack["accepted"], ack["discovered"], ack["truncated"]) == (1, 2, 0)
    assert [state_of(guide, url) for url in (A, A + "1", "https://b.org/")] == ["done", "queued", "queued"]


def test_a_page_that_was_told_is_not_given_again(unpaced: Guide) -> None:
    tell(unpaced, fetched(A, A + "1"))
    tell(unpaced, fetched(A + "1", A))
    assert asked(unpaced) == []


def test_the_same_report_twice_counts_once(guide: Guide) -> None:
    first = tell(guide, fetched(A, A + "1"), report_id="t-1")
    assert tell(guide, fetched(A, A + "1"), report_id="t-1") == first
    assert stats(guide)["fetches"] == 1


def test_the_same_report_counts_once_for_a_day(guide: Guide, clock: ManualClock) -> None:
    tell(guide, fetched(A), report_id="t-1")
    clock.advance(86_399.0)
    tell(guide, fetched(A), report_id="t-1")
    assert stats(guide)["fetches"] == 1


def test_the_same_report_id_with_another_body_is_a_conflict(guide: Guide) -> None:
    tell(guide, fetched(A), report_id="t-1")
    with pytest.raises(Conflict) as refusal:
        tell(guide, fetched(A + "1"), report_id="t-1")
    assert refusal.value.field == "report_id"


def test_a_report_id_and_a_request_id_do_not_meet(guide: Guide) -> None:
    ask(guide, request_id="x")
    assert tell(guide, fetched(A), report_id="x")["accepted"] == 1


def test_recent_history_counts_as_told(guide: Guide) -> None:
    ask(guide, recent_history=[fetched(A)])
    assert (state_of(guide, A), stats(guide)["fetches"]) == ("done", 1)


def test_links_in_recent_history_are_candidates_of_the_same_answer(guide: Guide) -> None:
    assert asked(guide, recent_history=[fetched(A, "https://b.org/x")]) == ["https://b.org/x"]


def test_recent_history_ends_the_lease_of_what_it_tells(unpaced: Guide) -> None:
    unpaced.seed("default", [A])
    asked(unpaced)
    asked(unpaced, recent_history=[fetched(A)])
    assert stats(unpaced)["leased"] == 0


def test_a_fetch_told_twice_with_its_time_counts_once(guide: Guide) -> None:
    tell(guide, fetched(A, fetch_time="2025-11-03T14:15:00Z"))
    ack = tell(guide, fetched(A, fetch_time="2025-11-03T14:15:00Z"))
    assert ack["results"][0]["status"] == "skip"
    assert stats(guide)["fetches"] == 1


def test_a_fetch_in_a_report_and_again_in_a_history_counts_once(guide: Guide) -> None:
    tell(guide, fetched(A, fetch_time="2025-11-03T14:15:00Z"))
    ask(guide, recent_history=[fetched(A, fetch_time="2025-11-03T14:15:00Z")])
    assert stats(guide)["fetches"] == 1


def test_a_fetch_at_another_time_counts_again(guide: Guide) -> None:
    tell(guide, fetched(A, fetch_time="2025-11-03T14:15:00Z"))
    tell(guide, fetched(A, fetch_time="2025-11-03T14:16:00Z"))
    assert stats(guide)["fetches"] == 2


def test_a_fetch_of_another_crawl_is_another_fetch(guide: Guide) -> None:
    tell(guide, fetched(A, fetch_time="2025-11-03T14:15:00Z"), crawl_id="one")
    assert tell(guide, fetched(A, fetch_time="2025-11-03T14:15:00Z"), crawl_id="two")["accepted"] == 1


def test_a_bad_url_inside_a_good_report_is_a_skip_with_a_reason(guide: Guide) -> None:
    ack = tell(guide, fetched("ftp://a.org/"), fetched(A), fetched("nonsense"))
    assert [item["status"] for item in ack["results"]] == ["skip", "ok", "skip"]
    assert "http" in ack["results"][0]["reason"]
    assert ack["accepted"] == 1


def test_results_name_the_urls_as_they_came(guide: Guide) -> None:
    ack = tell(guide, fetched("HTTPS://A.org:443/#x"), fetched("ftp://a.org/"))
    assert [item["url"] for item in ack["results"]] == ["HTTPS://A.org:443/#x", "ftp://a.org/"]


def test_a_fetch_with_neither_status_nor_error_is_a_skip(guide: Guide) -> None:
    assert tell(guide, {"url": A})["results"][0]["status"] == "skip"


def test_a_bad_link_does_not_harm_the_others(guide: Guide) -> None:
    assert tell(guide, fetched(A, "mailto:me@a.org", "javascript:void(0)", "/x"))["discovered"] == 1


def test_a_relative_link_is_read_from_its_page(guide: Guide) -> None:
    tell(guide, fetched(A + "dir/page", "../x"))
    assert state_of(guide, A + "x") == "queued"


def test_a_fetch_that_was_never_assigned_is_recorded(guide: Guide) -> None:
    tell(guide, fetched(A))
    assert (state_of(guide, A), stats(guide)["fetches"]) == ("done", 1)


def test_links_over_ten_thousand_are_dropped_and_counted(guide: Guide) -> None:
    ack = tell(guide, fetched(A, *pages(10_003, A + "p/")))
    assert (ack["truncated"], ack["discovered"]) == (3, 10_000)


def test_a_page_told_as_relevant_is_counted(guide: Guide) -> None:
    tell(guide, fetched(A, relevance=0.9), fetched(A + "1", relevance=0.1))
    assert stats(guide)["relevant"] == 1


def test_links_of_a_relevant_page_come_before_links_of_an_irrelevant_one(unpaced: Guide) -> None:
    tell(unpaced, fetched(A, A + "bad", relevance=0.0), fetched(A + "hub", A + "good", relevance=1.0))
    assert asked(unpaced) == [A + "good", A + "bad"]
