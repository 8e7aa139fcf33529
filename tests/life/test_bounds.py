"""Crawlers with bounds and scopes of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crawlguide import Guide
from crawlguide.core.errors import MalformedRequest
from crawlguide.testing import ManualClock
from tests.life.common import B, numbers, pages, policy
from tests.support import ask, asked, fetched, tell

if TYPE_CHECKING:
    from pathlib import Path


def test_max_urls_of_a_crawler_bounds_an_ask(guide: Guide) -> None:
    policy(guide, crawlers={"small": {"max_urls": 2}})
    guide.seed("default", pages(20))
    assert (len(asked(guide, "small", 10)), len(asked(guide, "other", 10))) == (2, 10)


def test_max_leases_bounds_what_a_crawler_holds_at_once(guide: Guide, clock: ManualClock) -> None:
    policy(guide, crawlers={"c-1": {"max_leases": 3}})
    guide.seed("default", pages(20))
    first = asked(guide, "c-1", 2)
    assert len(asked(guide, "c-1", 10)) == 1
    answer = ask(guide, "c-1", 10)
    assert (answer["assigned_urls"], answer["metadata"]["crawl_state"]) == ([], "waiting")
    assert 0 < answer["retry_after_ms"] <= 1_000
    tell(guide, fetched(first[0]), crawler_id="c-1")
    assert len(asked(guide, "c-1", 10)) == 1
    clock.advance(1_000.0)
    assert len(asked(guide, "c-1", 10)) == 3


def test_what_is_told_by_somebody_else_makes_room_too(guide: Guide) -> None:
    policy(guide, crawlers={"c-1": {"max_leases": 1}})
    guide.seed("default", pages(3))
    tell(guide, fetched(asked(guide, "c-1")[0]), crawler_id="c-2")
    assert len(asked(guide, "c-1")) == 1


def test_max_leases_counts_what_was_held_before_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        policy(guide, crawlers={"c-1": {"max_leases": 3}})
        guide.seed("default", pages(9))
        asked(guide, "c-1", 2)
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        assert len(asked(guide, "c-1", 9)) == 1


def test_the_exact_name_counts_before_the_longest_beginning(guide: Guide) -> None:
    bounds = {"*": 1, "gpu-*": 2, "gpu-a-*": 3, "gpu-a-1": 4}
    policy(guide, crawlers={name: {"max_urls": most} for name, most in bounds.items()})
    guide.seed("default", pages(40))
    crawlers = ("cpu-1", "gpu-b", "gpu-a-2", "gpu-a-1", "gpu-")
    assert [len(asked(guide, crawler, 10)) for crawler in crawlers] == [1, 2, 3, 4, 2]


def test_a_crawler_gets_only_what_lies_in_its_scope_and_others_the_rest(guide: Guide) -> None:
    policy(guide, crawlers={"c-1": {"allow_domains": ["b.org"]}, "c-2": {"deny_domains": ["b.org"]}})
    guide.seed("default", [*pages(3), *pages(3, B)])
    answer = ask(guide, "c-1", 10)
    assert {one["url"] for one in answer["assigned_urls"]} == set(pages(3, B))
    assert answer["metadata"]["dropped"] == {"crawlers": 3}
    assert set(asked(guide, "c-2", 10)) == set(pages(3))
    assert numbers(guide)["dropped"] == {}


def test_a_scope_is_found_below_thousands_of_better_urls(guide: Guide) -> None:
    """More hosts than an ask gathers candidates stand before the one that this crawler may fetch."""
    policy(guide, crawlers={"c-1": {"allow_domains": ["wanted.org"]}})
    better = [{"url": f"https://h{number}.better.org/", "priority": 0.9} for number in range(6_000)]
    guide.seed("default", [*better, {"url": "https://sub.wanted.org/x", "priority": 0.1}])
    assert asked(guide, "c-1") == ["https://sub.wanted.org/x"]


@pytest.mark.parametrize("scope", [{"deny_domains": ["better.org"]}, {"allow_domains": ["com"]}])
def test_a_scope_that_no_name_leads_to_is_found_in_bounded_steps(guide: Guide, scope: dict[str, Any]) -> None:
    policy(guide, crawlers={"c-1": scope})
    better = [{"url": f"https://h{number}.better.org/", "priority": 0.9} for number in range(6_000)]
    guide.seed("default", [*better, {"url": "https://wanted.com/x", "priority": 0.1}])
    answers = [asked(guide, "c-1") for _ in range(7)]
    assert answers.index(["https://wanted.com/x"]) > 0, "found at once: the frontier was looked through in one ask"


def test_a_scope_of_many_hosts_gives_all_of_them_in_the_end(guide: Guide) -> None:
    policy(guide, crawlers={"c-1": {"allow_domains": ["wanted.org"]}})
    better = [{"url": f"https://h{number}.better.org/", "priority": 0.9} for number in range(5_000)]
    wanted = [f"https://w{number}.wanted.org/" for number in range(130)]
    guide.seed("default", [*better, *({"url": url, "priority": 0.1} for url in wanted)])
    given = [url for _ in range(20) for url in asked(guide, "c-1", 50)]
    assert sorted(given) == sorted(wanted)


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"max_urls": -1}, "policy.crawlers[...].max_urls"),
        ({"max_url": 1}, "policy.crawlers[...].max_url"),
        ({"allow_domains": ["no domain"]}, "policy.crawlers.c-1.allow_domains[0]"),
    ],
)
def test_a_wrong_bound_is_refused_by_name(guide: Guide, entry: dict[str, Any], field: str) -> None:
    with pytest.raises(MalformedRequest) as wrong:
        policy(guide, crawlers={"c-1": entry})
    assert wrong.value.field == field
