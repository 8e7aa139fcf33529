"""What the protocol promises, through the library door: a guide over the memory store, and a clock we move."""

from __future__ import annotations

import random
import time
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlguide import Guide
from crawlguide.core import urls
from crawlguide.core.clock import iso
from crawlguide.core.config import Config, Crawls, GuideOptions, StoreOptions
from crawlguide.core.errors import ConfigError, Conflict, MalformedRequest, NotFound, UnsupportedVersion
from crawlguide.core.types import Crawl
from crawlguide.testing import ManualClock
from tests.support import ask, asked, fetched, state_of, store_of, tell

if TYPE_CHECKING:
    from collections.abc import Iterator

UNPACED = {"default_delay_s": 0, "max_per_host": 0}
LEASE_S = 150.0  # the default timeout of 120 s and a quarter more
A = "https://a.org/"
HOSTS = [f"https://host{number}.org/" for number in range(10)]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def guide(clock: ManualClock) -> Iterator[Guide]:
    with Guide.open(":memory:", clock=clock) as opened:
        yield opened


@pytest.fixture
def unpaced(guide: Guide) -> Guide:
    """A guide whose default crawl has no delays and no bound per host."""
    guide.define("default", {"policy": UNPACED})
    return guide


def pages(count: int, host: str = A) -> list[str]:
    return [f"{host}{number}" for number in range(count)]


def stats(guide: Guide, crawl_id: str = "default") -> dict[str, Any]:
    found: dict[str, Any] = guide.stats(crawl_id)["crawls"][crawl_id]
    return found


def crawl_state(guide: Guide) -> str:
    return str(ask(guide)["metadata"]["crawl_state"])


def seconds_until_given(guide: Guide, clock: ManualClock, url: str, most: int = 10_000) -> int:
    """Let the clock tick until the URL is given out; it is then leased."""
    for waited in range(most):
        if url in asked(guide):
            return waited
        clock.advance(1.0)
    raise AssertionError(f"{url} was not given within {most} s")


# asking


def test_a_seed_is_given_out(guide: Guide) -> None:
    guide.seed("default", [A])
    assert asked(guide) == [A]


def test_seeding_says_how_many_were_new(guide: Guide) -> None:
    guide.seed("default", [A])
    assert guide.seed("default", [A, A + "1", A + "#again"]) == 1


def test_never_more_than_max_urls(unpaced: Guide) -> None:
    unpaced.seed("default", list(pages(30)))
    assert len(asked(unpaced, max_urls=7)) == 7


def test_nobody_else_gets_a_leased_url(unpaced: Guide) -> None:
    unpaced.seed("default", list(pages(6)))
    first, second = asked(unpaced, "c-1", 3), asked(unpaced, "c-2", 10)
    assert sorted(first + second) == pages(6)


def test_the_best_score_comes_first(unpaced: Guide) -> None:
    unpaced.seed("default", [{"url": url, "priority": n % 7 / 7} for n, url in enumerate(pages(20))])
    scores = [given["score"] for given in ask(unpaced, max_urls=20)["assigned_urls"]]
    assert len(scores) == 20
    assert scores == sorted(scores, reverse=True)


def test_terms_sum_to_the_score(unpaced: Guide) -> None:
    unpaced.seed("default", [{"url": url, "priority": n % 7 / 7} for n, url in enumerate(pages(20))])
    for given_out in ask(unpaced, max_urls=20, seed_urls=[A])["assigned_urls"]:
        assert sum(given_out["terms"].values()) == pytest.approx(given_out["score"], abs=0.001)


def test_p_is_a_probability(unpaced: Guide) -> None:
    unpaced.seed("default", [{"url": url, "priority": n % 2} for n, url in enumerate(pages(20))])
    assert all(0 <= given_out["p"] <= 1 for given_out in ask(unpaced, max_urls=20)["assigned_urls"])


def test_an_answer_carries_the_request_id(guide: Guide) -> None:
    assert ask(guide, request_id="r-1")["metadata"]["request_id"] == "r-1"


def test_an_answer_counts_the_queries(guide: Guide) -> None:
    ask(guide)
    assert ask(guide)["metadata"]["num_queries_completed"] == 2


def test_an_answer_names_its_filters_and_its_strategy(guide: Guide) -> None:
    metadata = ask(guide)["metadata"]
    assert {"seen_ok", "scope_ok", "politeness_ok", "budget_ok"} <= set(metadata["filters_applied"])
    assert metadata["strategy"] == "layered"


def test_seeds_of_an_ask_are_added(guide: Guide) -> None:
    assert asked(guide, seed_urls=[A]) == [A]


def test_a_bad_seed_of_an_ask_is_passed_over(guide: Guide) -> None:
    assert asked(guide, seed_urls=["ftp://a.org/", A]) == [A]


def test_the_focus_of_an_ask_is_preferred_and_never_a_restriction(guide: Guide) -> None:
    guide.seed("default", list(HOSTS))
    given_out = asked(guide, seed_urls=[HOSTS[7]])
    assert given_out[0] == HOSTS[7]
    assert sorted(given_out) == sorted(HOSTS)


def test_a_domain_hash_is_preferred_and_never_a_restriction(guide: Guide) -> None:
    guide.seed("default", list(HOSTS))
    given_out = asked(guide, domain_hash=urls.domain_hash("host7.org"))
    assert given_out[0] == HOSTS[7]
    assert sorted(given_out) == sorted(HOSTS)


def test_authority_told_with_the_ask_decides_between_equals(guide: Guide) -> None:
    guide.seed("default", list(HOSTS))
    assert asked(guide, external_features={HOSTS[4]: {"pagerank": 1.0}})[0] == HOSTS[4]


@pytest.mark.parametrize("count", [0, -3, 10_001])
def test_a_number_of_urls_out_of_range_is_refused_by_name(guide: Guide, count: int) -> None:
    with pytest.raises(MalformedRequest, match=f"expected an integer from 1 to 10000, got {count}") as refusal:
        ask(guide, max_urls=count)
    assert refusal.value.field == "budget.max_urls"


@pytest.mark.parametrize("missing", ["mcp_version", "crawler_id", "budget"])
def test_a_missing_field_is_refused_by_name(guide: Guide, missing: str) -> None:
    message = {"mcp_version": "2025-11", "crawler_id": "c", "budget": {"max_urls": 1}}
    del message[missing]
    with pytest.raises(MalformedRequest) as refusal:
        guide.ask(message)
    assert refusal.value.field == missing


def test_another_version_of_the_protocol_is_refused(guide: Guide) -> None:
    with pytest.raises(UnsupportedVersion):
        guide.ask({"mcp_version": "2024-01", "crawler_id": "c", "budget": {"max_urls": 1}})


def test_unknown_fields_of_an_ask_are_ignored(guide: Guide) -> None:
    message = {"mcp_version": "2025-11", "crawler_id": "c", "budget": {"max_urls": 1}, "from_the_future": 1}
    assert guide.ask(message)["assigned_urls"] == []


def test_unknown_fields_of_a_definition_are_refused_by_name(guide: Guide) -> None:
    with pytest.raises(MalformedRequest, match=r"policy\.max_pre_host"):
        guide.define("default", {"policy": {"max_pre_host": 3}})


# the same request twice


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


# telling


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


# failures


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


# redirects


def test_after_a_redirect_both_urls_are_done(guide: Guide) -> None:
    tell(guide, fetched(A, redirected_to="https://b.org/"))
    assert (state_of(guide, A), state_of(guide, "https://b.org/")) == ("done", "done")


def test_a_redirect_is_read_from_the_url_that_was_fetched(guide: Guide) -> None:
    tell(guide, fetched(A + "old", redirected_to="/new"))
    assert state_of(guide, A + "new") == "done"


def test_the_target_of_a_redirect_is_not_given_any_more(unpaced: Guide) -> None:
    unpaced.seed("default", [A, A + "target"])
    tell(unpaced, fetched(A, redirected_to=A + "target"))
    assert asked(unpaced) == []


def test_links_found_after_a_redirect_belong_to_the_target(guide: Guide) -> None:
    tell(guide, fetched(A, A + "link", redirected_to="https://b.org/"))
    child = np.array([urls.identity(A + "link")], np.uint64)
    parents = guide._run(store_of(guide).parents(Crawl("default", "default"), child)).parent
    assert parents.tolist() == [urls.identity("https://b.org/")]


def test_relative_links_found_after_a_redirect_are_read_from_the_target(guide: Guide) -> None:
    tell(guide, fetched(A, "x", redirected_to="https://b.org/dir/"))
    assert state_of(guide, "https://b.org/dir/x") == "queued"


def test_a_redirect_does_not_bring_a_page_nearer_to_the_seed(guide: Guide) -> None:
    guide.define("default", {"policy": UNPACED, "limits": {"max_depth": 1}})
    guide.seed("default", [A])
    tell(guide, fetched(A, A + "1"))
    tell(guide, fetched(A + "1", A + "2", redirected_to=A + "moved"))
    assert state_of(guide, A + "2") == "dropped"


def test_a_seed_that_redirects_keeps_its_bound_on_depth(guide: Guide) -> None:
    guide.seed("default", [{"url": A, "max_depth": 0}])
    tell(guide, fetched(A, A + "1", redirected_to="https://www.a.org/"))
    assert state_of(guide, A + "1") == "dropped"


# leases


def test_a_released_url_is_given_to_another_crawler_at_once(unpaced: Guide) -> None:
    unpaced.seed("default", [A])
    asked(unpaced, "c-1")
    ack = tell(unpaced, {"url": A, "error": "released"}, crawler_id="c-1")
    assert ack["results"] == [{"url": A, "status": "ok"}]
    assert asked(unpaced, "c-2") == [A]


def test_a_release_is_neither_a_fetch_nor_a_failure(unpaced: Guide) -> None:
    unpaced.seed("default", [A])
    asked(unpaced)
    tell(unpaced, {"url": A, "error": "released"})
    assert (stats(unpaced)["fetches"], stats(unpaced)["failed"]) == (0, 0)


def test_releasing_what_nobody_holds_is_a_skip(unpaced: Guide) -> None:
    unpaced.seed("default", [A])
    assert tell(unpaced, {"url": A, "error": "released"})["results"][0]["status"] == "skip"


def test_a_crawler_cannot_release_what_another_holds(unpaced: Guide, clock: ManualClock) -> None:
    unpaced.seed("default", [A])
    asked(unpaced, "c-1")
    clock.advance(LEASE_S)
    assert asked(unpaced, "c-2") == [A]
    tell(unpaced, {"url": A, "error": "released"}, crawler_id="c-1")  # too late: its lease has ended
    assert asked(unpaced, "c-3") == []


def test_the_answer_says_when_the_lease_ends(guide: Guide, clock: ManualClock) -> None:
    guide.seed("default", [A])
    given_out = ask(guide, timeout_ms=100_000)["assigned_urls"][0]
    assert given_out["lease_expires"] == iso(clock.now() + 125.0)


def test_a_lease_lasts_for_the_timeout_and_a_quarter_more(unpaced: Guide, clock: ManualClock) -> None:
    unpaced.seed("default", [A])
    asked(unpaced, "c-1", timeout_ms=100_000)
    clock.advance(124.999)
    assert asked(unpaced, "c-2") == []


def test_an_expired_url_is_given_to_another_crawler(unpaced: Guide, clock: ManualClock) -> None:
    unpaced.seed("default", [A])
    asked(unpaced, "c-1", timeout_ms=100_000)
    clock.advance(125.0)
    assert asked(unpaced, "c-2") == [A]


def test_without_a_timeout_a_lease_lasts_for_150_seconds(unpaced: Guide, clock: ManualClock) -> None:
    unpaced.seed("default", [A])
    asked(unpaced, "c-1")
    clock.advance(LEASE_S - 0.001)
    assert asked(unpaced, "c-2") == []
    clock.advance(0.001)
    assert asked(unpaced, "c-2") == [A]


def test_a_fetch_told_after_its_lease_ended_still_counts(unpaced: Guide, clock: ManualClock) -> None:
    unpaced.seed("default", [A])
    asked(unpaced)
    clock.advance(LEASE_S + 1.0)
    tell(unpaced, fetched(A))
    assert asked(unpaced) == []


def test_times_that_a_crawler_writes_never_drive_leases(unpaced: Guide, clock: ManualClock) -> None:
    unpaced.seed("default", [A])
    asked(unpaced, "c-1", request_timestamp="2099-01-01T00:00:00Z")
    clock.advance(LEASE_S)
    assert asked(unpaced, "c-2", request_timestamp="1999-01-01T00:00:00Z") == [A]


# late feedback


def test_a_late_reward_is_accepted_and_is_no_fetch(guide: Guide) -> None:
    tell(guide, fetched(A))
    assert tell(guide, {"url": A, "reward": 1.0})["accepted"] == 1
    assert stats(guide)["fetches"] == 1


def test_a_late_reward_makes_a_page_relevant(guide: Guide) -> None:
    tell(guide, fetched(A, relevance=0.0))
    tell(guide, {"url": A, "reward": 1.0})
    assert stats(guide)["relevant"] == 1


def test_a_late_reward_lifts_the_links_of_its_page(unpaced: Guide) -> None:
    tell(unpaced, fetched(A, A + "one", relevance=0.0), fetched(A + "hub", A + "two", relevance=0.2))
    tell(unpaced, {"url": A, "reward": 1.0})
    assert asked(unpaced) == [A + "one", A + "two"]


def test_a_late_reward_lowers_the_links_of_its_page(unpaced: Guide) -> None:
    tell(unpaced, fetched(A, A + "one", relevance=1.0), fetched(A + "hub", A + "two", relevance=0.5))
    tell(unpaced, {"url": A, "reward": 0.0})
    assert asked(unpaced) == [A + "two", A + "one"]


def test_a_late_reward_lowers_the_links_of_its_page_under_best_first_too(guide: Guide) -> None:
    guide.define("default", {"policy": UNPACED, "strategy": {"kind": "best-first"}})
    tell(guide, fetched(A, A + "one", relevance=1.0), fetched(A + "hub", A + "two", relevance=0.5))
    tell(guide, {"url": A, "reward": 0.0})
    assert asked(guide) == [A + "two", A + "one"]


def test_a_reward_for_a_page_never_fetched_is_a_skip(guide: Guide) -> None:
    guide.seed("default", [A])
    assert tell(guide, {"url": A, "reward": 1.0})["results"][0]["status"] == "skip"


def test_a_reward_told_with_the_fetch_replaces_the_relevance(guide: Guide) -> None:
    tell(guide, fetched(A, relevance=0.0, reward=1.0))
    assert stats(guide)["relevant"] == 1


# metadata


METADATA = {"label": "product", "nested": {"list": [1, 2.5, None, True, "ä"]}, "big": 2**53}


def test_metadata_of_a_seed_comes_back_unchanged(guide: Guide) -> None:
    guide.seed("default", [{"url": A, "metadata": METADATA}])
    assert ask(guide)["assigned_urls"][0]["metadata"] == METADATA


def test_metadata_of_a_link_comes_back_unchanged(guide: Guide) -> None:
    tell(guide, fetched(A) | {"outlinks": [{"url": "https://b.org/", "metadata": METADATA}]})
    assert ask(guide)["assigned_urls"][0]["metadata"] == METADATA


def test_metadata_comes_back_again_when_the_url_is_given_again(unpaced: Guide, clock: ManualClock) -> None:
    unpaced.seed("default", [{"url": A, "metadata": METADATA}])
    asked(unpaced)
    clock.advance(LEASE_S)
    assert ask(unpaced)["assigned_urls"][0]["metadata"] == METADATA


def test_metadata_of_four_kibibytes_is_taken(guide: Guide) -> None:
    metadata = {"x": "y" * (4_096 - len('{"x":""}'))}
    guide.seed("default", [{"url": A, "metadata": metadata}])
    assert ask(guide)["assigned_urls"][0]["metadata"] == metadata


def test_a_seed_with_more_metadata_is_refused_by_name(guide: Guide) -> None:
    with pytest.raises(MalformedRequest, match="metadata: expected at most 4096 bytes") as refusal:
        guide.seed("default", [A, {"url": A + "1", "metadata": {"x": "y" * 4_096}}])
    assert refusal.value.field == "urls[1]"


def test_a_link_with_more_metadata_comes_without_it(guide: Guide) -> None:
    heavy = {"url": "https://b.org/", "metadata": {"x": "y" * 4_096}}
    assert tell(guide, fetched(A) | {"outlinks": [heavy, {"url": "https://c.org/"}]})["discovered"] == 2
    assert all("metadata" not in given for given in ask(guide)["assigned_urls"])


def test_a_url_without_metadata_has_none_in_the_answer(guide: Guide) -> None:
    guide.seed("default", [A])
    assert "metadata" not in ask(guide)["assigned_urls"][0]


# seeds


@pytest.mark.parametrize("kind", ["layered", "best-first", "breadth-first", "depth-first", "random"])
def test_the_priority_of_a_seed_decides(guide: Guide, kind: str) -> None:
    guide.define("default", {"policy": UNPACED, "strategy": {"kind": kind}})
    order = [0.4, 0.9, 0.1, 0.7]
    guide.seed("default", [{"url": f"{A}{priority}", "priority": priority} for priority in order])
    assert asked(guide) == [f"{A}{priority}" for priority in (0.9, 0.7, 0.4, 0.1)]


def test_the_links_of_a_seed_with_depth_zero_are_never_given(unpaced: Guide) -> None:
    unpaced.seed("default", [{"url": A, "max_depth": 0}])
    tell(unpaced, fetched(A, A + "1"))
    assert asked(unpaced) == []


def test_a_seed_with_depth_one_leads_one_link_far(unpaced: Guide) -> None:
    unpaced.seed("default", [{"url": A, "max_depth": 1}])
    tell(unpaced, fetched(A, A + "1"))
    assert asked(unpaced) == [A + "1"]
    tell(unpaced, fetched(A + "1", A + "2"))
    assert asked(unpaced) == []


def test_the_bound_of_one_seed_does_not_bind_another(unpaced: Guide) -> None:
    unpaced.seed("default", [{"url": A, "max_depth": 0}, "https://b.org/"])
    tell(unpaced, fetched(A, A + "1"), fetched("https://b.org/", "https://b.org/1"))
    assert asked(unpaced) == ["https://b.org/1"]


def test_a_url_too_deep_from_one_seed_is_given_when_another_is_near(unpaced: Guide) -> None:
    unpaced.seed("default", [{"url": A, "max_depth": 0}, "https://b.org/"])
    tell(unpaced, fetched(A, A + "1"))
    tell(unpaced, fetched("https://b.org/", A + "1"))
    assert asked(unpaced) == [A + "1"]


def test_the_crawl_bounds_depth_for_all(guide: Guide) -> None:
    guide.define("default", {"policy": UNPACED, "limits": {"max_depth": 1}})
    guide.seed("default", [A])
    tell(guide, fetched(A, A + "1"))
    tell(guide, fetched(A + "1", A + "2"))
    assert asked(guide) == []
    assert state_of(guide, A + "2") == "dropped"


def test_a_new_definition_may_bound_depth_less(guide: Guide) -> None:
    guide.define("default", {"policy": UNPACED, "limits": {"max_depth": 1}})
    guide.seed("default", [A])
    tell(guide, fetched(A, A + "1"))
    guide.define("default", {"policy": UNPACED, "limits": {"max_depth": 2}})
    tell(guide, fetched(A + "1", A + "2"))
    assert asked(guide) == [A + "2"]


def test_one_seed_that_nobody_can_fetch_refuses_them_all_by_name(guide: Guide) -> None:
    with pytest.raises(MalformedRequest) as refusal:
        guide.seed("default", [A, "ftp://a.org/"])
    assert refusal.value.field == "urls[1]"
    assert asked(guide) == []


# limits and states


def test_an_unknown_crawl_is_exhausted(guide: Guide) -> None:
    assert crawl_state(guide) == "exhausted"


def test_a_crawl_that_gives_something_is_running(guide: Guide) -> None:
    guide.seed("default", [A])
    assert crawl_state(guide) == "running"


def test_a_crawl_whose_urls_are_all_leased_is_waiting(unpaced: Guide) -> None:
    unpaced.seed("default", [A])
    asked(unpaced)
    assert crawl_state(unpaced) == "waiting"


def test_a_crawl_whose_host_has_to_rest_is_waiting(guide: Guide) -> None:
    guide.define("default", {"policy": {"default_delay_s": 100}})
    guide.seed("default", list(pages(2)))
    tell(guide, fetched(asked(guide)[0]))
    assert crawl_state(guide) == "waiting"


def test_a_crawl_whose_url_is_to_be_tried_again_is_waiting(unpaced: Guide) -> None:
    tell(unpaced, fetched(A, error="timeout"))
    assert crawl_state(unpaced) == "waiting"


def test_a_crawl_with_nothing_left_is_exhausted(unpaced: Guide) -> None:
    unpaced.seed("default", [A])
    tell(unpaced, fetched(asked(unpaced)[0]))
    assert crawl_state(unpaced) == "exhausted"


def test_stats_tell_the_same_state(unpaced: Guide) -> None:
    unpaced.seed("default", [A])
    states = [stats(unpaced)["state"]]
    asked(unpaced)
    states.append(stats(unpaced)["state"])
    tell(unpaced, fetched(A))
    states.append(stats(unpaced)["state"])
    assert states == ["running", "waiting", "exhausted"]


def test_an_empty_answer_says_when_to_come_back(unpaced: Guide) -> None:
    unpaced.seed("default", [A])
    asked(unpaced)
    assert ask(unpaced)["retry_after_ms"] > 0


def test_an_answer_with_urls_says_to_come_back_at_once(guide: Guide) -> None:
    guide.seed("default", [A])
    assert ask(guide)["retry_after_ms"] == 0


def test_coming_back_when_told_to_is_not_in_vain(guide: Guide, clock: ManualClock) -> None:
    guide.define("default", {"policy": {"default_delay_s": 40}})
    guide.seed("default", list(pages(2)))
    tell(guide, fetched(asked(guide)[0]))
    waited = 0
    while not (answer := ask(guide))["assigned_urls"]:
        waited += answer["retry_after_ms"]
        clock.advance(answer["retry_after_ms"] / 1_000)
    assert waited <= 41_000


def test_no_more_than_max_pages_are_given(guide: Guide) -> None:
    guide.define("default", {"policy": UNPACED, "limits": {"max_pages": 3}})
    guide.seed("default", list(pages(10)))
    assert len(asked(guide, "c-1", 2)) == 2
    assert len(asked(guide, "c-2", 2)) == 1
    assert asked(guide, "c-3", 2) == []


def test_a_crawl_with_all_its_pages_is_finished(guide: Guide) -> None:
    guide.define("default", {"policy": UNPACED, "limits": {"max_pages": 3}})
    guide.seed("default", list(pages(10)))
    for url in asked(guide):
        tell(guide, fetched(url))
    assert (asked(guide), crawl_state(guide)) == ([], "finished")


def test_a_crawl_whose_last_pages_are_on_their_way_is_waiting(guide: Guide) -> None:
    guide.define("default", {"policy": UNPACED, "limits": {"max_pages": 3}})
    guide.seed("default", list(pages(10)))
    asked(guide)
    assert crawl_state(guide) == "waiting"


def test_a_page_that_failed_is_not_one_of_max_pages(guide: Guide) -> None:
    guide.define("default", {"policy": UNPACED, "limits": {"max_pages": 1}})
    guide.seed("default", list(pages(2)))
    tell(guide, fetched(asked(guide)[0], status=404))
    assert len(asked(guide)) == 1


def test_until_then_a_crawl_gives(guide: Guide, clock: ManualClock) -> None:
    guide.define("default", {"limits": {"until": iso(clock.now() + 100.0)}})
    guide.seed("default", list(HOSTS))
    clock.advance(99.0)
    assert len(asked(guide, max_urls=3)) == 3


def test_after_until_a_crawl_is_finished(guide: Guide, clock: ManualClock) -> None:
    guide.define("default", {"limits": {"until": iso(clock.now() + 100.0)}})
    guide.seed("default", list(HOSTS))
    clock.advance(100.0)
    assert (asked(guide), crawl_state(guide)) == ([], "finished")


def test_until_is_read_with_its_zone(guide: Guide, clock: ManualClock) -> None:
    guide.seed("default", list(HOSTS))
    guide.define("default", {"limits": {"until": "2023-11-14T23:13:20+01:00"}})  # the very instant of the clock
    assert crawl_state(guide) == "finished"


def test_until_without_a_zone_means_utc_wherever_the_machine_stands(
    guide: Guide, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide.seed("default", list(HOSTS))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        until = datetime.fromtimestamp(clock.now() + 60.0, UTC).replace(tzinfo=None).isoformat()
        guide.define("default", {"limits": {"until": until}})
        assert crawl_state(guide) == "running"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_an_until_that_is_no_instant_is_refused_by_name(guide: Guide) -> None:
    with pytest.raises(MalformedRequest) as refusal:
        guide.define("default", {"limits": {"until": "tomorrow"}})
    assert refusal.value.field == "limits.until"


def test_a_paused_crawl_gives_nothing_and_says_so(guide: Guide) -> None:
    guide.seed("default", [A])
    guide.pause("default")
    assert (asked(guide), crawl_state(guide)) == ([], "paused")


def test_a_paused_crawl_still_listens(guide: Guide) -> None:
    guide.seed("default", [A])
    guide.pause("default")
    assert tell(guide, fetched(A, A + "1"))["discovered"] == 1


def test_a_resumed_crawl_goes_on(guide: Guide) -> None:
    guide.seed("default", [A])
    guide.pause("default")
    guide.resume("default")
    assert asked(guide) == [A]


def test_a_new_definition_does_not_wake_a_paused_crawl(guide: Guide) -> None:
    guide.seed("default", [A])
    guide.pause("default")
    guide.define("default", {"policy": UNPACED})
    assert crawl_state(guide) == "paused"


def test_a_crawl_that_nobody_defined_is_not_found_if_the_operator_says_so() -> None:
    config = Config(crawls=Crawls(auto_create=False))
    with Guide.open(":memory:", clock=ManualClock(), config=config) as guide:
        for call in (lambda: ask(guide), lambda: tell(guide, fetched(A)), lambda: guide.seed("default", [A])):
            with pytest.raises(NotFound) as refusal:
                call()
            assert refusal.value.field == "crawl_id"


def test_a_crawl_that_somebody_defined_is_found_whatever_the_operator_says() -> None:
    config = Config(crawls=Crawls(auto_create=False))
    with Guide.open(":memory:", clock=ManualClock(), config=config) as guide:
        guide.define("default", {})
        guide.seed("default", [A])
        assert asked(guide) == [A]


# politeness


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


# definitions


def test_weights_override_those_of_the_strategy(guide: Guide) -> None:
    guide.define("default", {"weights": {"freshness": 0.0, "relevance": 2.0}})
    guide.seed("default", [A])
    given_out = ask(guide)["assigned_urls"][0]
    assert given_out["terms"]["freshness"] == 0.0
    assert given_out["terms"]["relevance"] == pytest.approx(2 * given_out["p"], abs=1e-5)


def test_weights_left_out_stay_as_the_strategy_wants_them(guide: Guide) -> None:
    guide.define("default", {"weights": {"freshness": 0.0}})
    guide.seed("default", [A])
    assert ask(guide)["assigned_urls"][0]["terms"]["politeness"] == 0.1


@pytest.mark.parametrize("kind", ["best-first", "breadth-first", "depth-first", "random"])
def test_the_classics_weigh_relevance_alone(guide: Guide, kind: str) -> None:
    guide.define("default", {"strategy": {"kind": kind}})
    guide.seed("default", [A])
    given_out = ask(guide, seed_urls=[A])["assigned_urls"][0]
    assert given_out["score"] == pytest.approx(given_out["terms"]["relevance"])
    assert [value for name, value in given_out["terms"].items() if name != "relevance" and value] == []


def test_the_weights_of_a_classic_can_be_overridden(guide: Guide) -> None:
    guide.define("default", {"strategy": {"kind": "breadth-first"}, "weights": {"authority": 1.0}})
    guide.seed("default", list(HOSTS))
    assert asked(guide, external_features={HOSTS[4]: {"pagerank": 1.0}})[0] == HOSTS[4]


def test_an_unknown_strategy_is_refused_with_the_known_ones(guide: Guide) -> None:
    with pytest.raises(MalformedRequest, match="breadth-first"):
        guide.define("default", {"strategy": {"kind": "breadth"}})


def test_a_link_out_of_scope_is_dropped_and_counted(guide: Guide) -> None:
    guide.define("default", {"policy": {"allow_domains": ["a.org"]}})
    tell(guide, fetched(A, "https://b.org/", "https://sub.a.org/"))
    assert asked(guide) == ["https://sub.a.org/"]
    assert stats(guide)["dropped"] == {"scope": 1}


def test_a_new_definition_hears_what_was_out_of_scope_again(guide: Guide) -> None:
    guide.define("default", {"policy": {"allow_domains": ["a.org"]}})
    tell(guide, fetched(A, "https://b.org/"))
    guide.define("default", {"policy": {"allow_domains": ["a.org", "b.org"]}})
    assert asked(guide) == ["https://b.org/"]


def test_a_new_definition_does_not_forget_bounds_on_depth(guide: Guide) -> None:
    guide.define("default", {"policy": {"allow_domains": ["a.org"]}})
    guide.seed("default", [{"url": A, "max_depth": 0}])
    tell(guide, fetched(A, A + "1"))
    guide.define("default", {"policy": {"allow_domains": ["a.org", "b.org"]}})
    assert asked(guide) == []


def test_no_more_pages_of_a_domain_than_wanted(guide: Guide) -> None:
    guide.define("default", {"policy": UNPACED | {"domain_max_pages": 3}})
    guide.seed("default", [f"https://{host}.a.org/{page}" for page in range(3) for host in "xyz"])
    given_out: list[str] = []
    while batch := asked(guide, max_urls=1):
        tell(guide, fetched(batch[0]))
        given_out += batch
    assert len(given_out) == 3


def test_no_more_pages_of_a_domain_than_wanted_in_one_answer(guide: Guide) -> None:
    guide.define("default", {"policy": UNPACED | {"domain_max_pages": 3}})
    guide.seed("default", [f"https://{host}.a.org/{page}" for page in range(3) for host in "xyz"])
    assert len(asked(guide, max_urls=9)) == 3


def test_a_page_is_crawled_again_when_it_is_due_and_not_before(guide: Guide, clock: ManualClock) -> None:
    guide.define("default", {"policy": UNPACED | {"recrawl": True, "recrawl_after_s": 1_000}})
    tell(guide, fetched(A))
    clock.advance(999.0)
    assert asked(guide) == []
    clock.advance(1.0)
    assert asked(guide) == [A]


def test_late_feedback_does_not_put_off_the_next_crawl_of_a_page(guide: Guide, clock: ManualClock) -> None:
    guide.define("default", {"policy": UNPACED | {"recrawl": True, "recrawl_after_s": 1_000}})
    tell(guide, fetched(A))
    clock.advance(900.0)
    tell(guide, {"url": A, "reward": 1.0})
    clock.advance(100.0)
    assert asked(guide) == [A]


def test_a_page_is_due_once_however_often_it_was_told(guide: Guide, clock: ManualClock) -> None:
    guide.define("default", {"policy": UNPACED | {"recrawl": True, "recrawl_after_s": 1_000}})
    for _ in range(3):
        tell(guide, fetched(A))
    clock.advance(1_000.0)
    assert (asked(guide, "c-1"), asked(guide, "c-2")) == ([A], [])
    assert stats(guide)["queued"] + stats(guide)["leased"] + stats(guide)["done"] == 1


# strategies


def web(size: int, seed: int) -> dict[str, list[str]]:
    """A small web of one host: every page links to some others."""
    chance = random.Random(seed)
    names = pages(size)
    return {name: chance.sample(names, chance.randrange(1, 6)) for name in names}


def walked(guide: Guide, kind: str, links: dict[str, list[str]], at_once: int = 1) -> list[str]:
    """The order in which a crawler visits a web."""
    guide.define("walk", {"policy": UNPACED, "strategy": {"kind": kind}})
    guide.seed("walk", [next(iter(links))])
    order: list[str] = []
    while batch := asked(guide, max_urls=at_once, crawl_id="walk"):
        order += batch
        tell(guide, *(fetched(url, *links[url]) for url in batch), crawl_id="walk")
    return order


def by_queue(links: dict[str, list[str]]) -> list[str]:
    start = next(iter(links))
    waiting, known, order = deque([start]), {start}, []
    while waiting:
        order.append(waiting.popleft())
        new = [link for link in dict.fromkeys(links[order[-1]]) if link not in known]
        waiting.extend(new)
        known.update(new)
    return order


def by_stack(links: dict[str, list[str]]) -> list[str]:
    start = next(iter(links))
    waiting, known, order = [start], {start}, []
    while waiting:
        order.append(waiting.pop())
        new = [link for link in dict.fromkeys(links[order[-1]]) if link not in known]
        waiting.extend(new)
        known.update(new)
    return order


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("at_once", [1, 7])
def test_breadth_first_is_a_queue(guide: Guide, seed: int, at_once: int) -> None:
    links = web(120, seed)
    assert walked(guide, "breadth-first", links, at_once) == by_queue(links)


@pytest.mark.parametrize("seed", range(3))
def test_depth_first_is_a_stack(guide: Guide, seed: int) -> None:
    links = web(120, seed)
    assert walked(guide, "depth-first", links) == by_stack(links)


def random_order(seed: int) -> list[str]:
    with Guide.open(":memory:", clock=ManualClock(), seed=seed) as guide:
        return walked(guide, "random", web(60, 0))


def test_random_is_the_same_for_the_same_seed() -> None:
    assert random_order(1) == random_order(1)


def test_random_is_another_for_another_seed() -> None:
    assert random_order(1) != random_order(2)


def test_random_is_neither_first_nor_last_discovered() -> None:
    order = random_order(1)
    assert order not in (by_queue(web(60, 0)), by_stack(web(60, 0)))


@pytest.mark.parametrize("kind", ["layered", "best-first", "relational", "breadth-first", "depth-first", "random"])
def test_every_strategy_visits_the_whole_web_once(guide: Guide, kind: str) -> None:
    links = web(120, 1)
    assert sorted(walked(guide, kind, links)) == sorted(by_queue(links))


def test_best_first_follows_the_links_of_the_most_relevant_page(guide: Guide) -> None:
    guide.define("default", {"policy": UNPACED, "strategy": {"kind": "best-first"}})
    tell(guide, *(fetched(f"{A}from{n}", f"{A}to{n}", relevance=n / 10) for n in (3, 9, 1, 6)))
    assert asked(guide) == [f"{A}to{n}" for n in (9, 6, 3, 1)]


def test_a_new_strategy_orders_what_is_already_waiting(guide: Guide) -> None:
    guide.define("default", {"policy": UNPACED, "strategy": {"kind": "breadth-first"}})
    guide.seed("default", list(pages(5)))
    guide.define("default", {"policy": UNPACED, "strategy": {"kind": "depth-first"}})
    assert asked(guide) == pages(5)[::-1]


# two crawls


def test_a_url_of_one_crawl_is_unknown_to_another(guide: Guide) -> None:
    guide.seed("one", [A])
    assert asked(guide, crawl_id="two") == []


def test_a_page_done_in_one_crawl_is_still_given_in_another(unpaced: Guide) -> None:
    tell(unpaced, fetched(A), crawl_id="one")
    unpaced.seed("two", [A])
    assert asked(unpaced, crawl_id="two") == [A]


def test_a_lease_of_one_crawl_is_no_lease_of_another(guide: Guide) -> None:
    for crawl in ("one", "two"):
        guide.define(crawl, {"policy": UNPACED})
        guide.seed(crawl, [A])
    assert asked(guide, crawl_id="one") == asked(guide, crawl_id="two") == [A]


def test_every_crawl_has_its_own_numbers(guide: Guide) -> None:
    tell(guide, fetched(A, A + "1"), crawl_id="one")
    guide.seed("two", [A])
    assert (stats(guide, "one")["fetches"], stats(guide, "two")["fetches"]) == (1, 0)


def test_every_crawl_has_its_own_definition(guide: Guide) -> None:
    guide.define("one", {"strategy": {"kind": "random"}})
    guide.seed("two", [A])
    assert (stats(guide, "one")["strategy"], stats(guide, "two")["strategy"]) == ("random", "layered")


# quota


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


# budget


def test_estimated_bytes_stay_within_the_budget(unpaced: Guide) -> None:
    unpaced.seed("default", list(pages(50)))
    given_out = ask(unpaced, max_urls=50, max_bytes=1_000_000)["assigned_urls"]
    assert 0 < sum(one["estimated_bytes"] for one in given_out) <= 1_000_000


def test_estimated_times_stay_within_timeout_times_concurrency(unpaced: Guide) -> None:
    unpaced.seed("default", list(pages(50)))
    given_out = ask(unpaced, max_urls=50, timeout_ms=2_000, metadata={"concurrency": 3})["assigned_urls"]
    assert 0 < sum(one["estimated_fetch_ms"] for one in given_out) <= 6_000


def test_without_a_word_on_concurrency_it_is_eight(unpaced: Guide) -> None:
    unpaced.seed("default", list(pages(200)))
    given_out = ask(unpaced, max_urls=200, timeout_ms=2_000)["assigned_urls"]
    assert sum(one["estimated_fetch_ms"] for one in given_out) == 16_000


@pytest.mark.parametrize("concurrency", [0, -1, 1.5, "8", True])
def test_a_concurrency_that_is_no_count_is_refused_by_name(guide: Guide, concurrency: object) -> None:
    with pytest.raises(MalformedRequest) as refusal:
        ask(guide, metadata={"concurrency": concurrency})
    assert refusal.value.field == "context.metadata.concurrency"


def test_estimates_follow_what_was_told_of_a_host(unpaced: Guide) -> None:
    tell(unpaced, *(fetched(f"{A}{n}", elapsed_ms=n * 100, bytes=n * 1_000) for n in (1, 2, 3)))
    unpaced.seed("default", [A + "next"])
    given_out = ask(unpaced)["assigned_urls"][0]
    assert (given_out["estimated_fetch_ms"], given_out["estimated_bytes"]) == (200, 2_000)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.floats(0, 20_000), st.floats(0, 5e6)), min_size=1, max_size=8),
    st.integers(0, 10_000_000),
    st.integers(1, 60_000),
    st.integers(1, 20),
)
def test_no_answer_is_over_its_budget(
    hosts: list[tuple[float, float]], max_bytes: int, timeout_ms: int, concurrency: int
) -> None:
    with Guide.open(":memory:", clock=ManualClock()) as guide:
        for number, (ms, size) in enumerate(hosts):
            links = pages(5, HOSTS[number])
            tell(guide, fetched(HOSTS[number], *links, elapsed_ms=ms, bytes=size))
        answer = ask(guide, "c", 40, max_bytes=max_bytes, timeout_ms=timeout_ms, metadata={"concurrency": concurrency})
        given_out = answer["assigned_urls"]
        assert sum(one["estimated_bytes"] for one in given_out) <= max_bytes
        assert sum(one["estimated_fetch_ms"] for one in given_out) <= timeout_ms * concurrency


# what was found by reading


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
        assert len(store_of(guide)._books[Crawl("default", "default")].answers) < 10  # type: ignore[attr-defined]


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
