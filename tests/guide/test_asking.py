"""What an answer holds, and which questions are refused."""

from __future__ import annotations

import pytest

from crawlguide import Guide
from crawlguide.core import urls
from crawlguide.core.errors import MalformedRequest, UnsupportedVersion
from tests.guide.common import HOSTS, A, pages
from tests.support import ask, asked


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
