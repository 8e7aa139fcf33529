"""`auto`: what a crawl takes for slow, for failing and for enough of a domain, by what it has met."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crawlguide import Guide
from crawlguide.core.definition import Definition, Policy
from crawlguide.core.errors import MalformedRequest
from crawlguide.policy import domains
from crawlguide.policy.profile import FEWEST, MOST, Profile
from crawlguide.testing import ManualClock
from tests.support import NOW, ask, asked, batch, fetched, question, running, tell

if TYPE_CHECKING:
    from pathlib import Path

A, B = "https://a.org/", "https://b.org/"
OPEN = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "traps": False, "risk_threshold": 1.0}


def opened(data: Path | str = ":memory:", **policy: Any) -> Guide:
    guide = Guide.open(data, clock=ManualClock(NOW))
    guide.define("default", {"policy": OPEN | policy})
    return guide


def profile(guide: Guide) -> Profile:
    found = running(guide)
    assert found.profile is not None
    return found.profile


def pages(base: str, count: int, **more: Any) -> list[dict[str, Any]]:
    return [fetched(f"{base}{number}", **more) for number in range(count)]


def test_slow_is_three_times_what_the_crawl_is_used_to_within_bounds() -> None:
    with opened() as guide:
        tell(guide, *pages(A, 10, elapsed_ms=700))
        assert profile(guide).slow_ms == 5_000.0  # too few to say
        tell(guide, *pages(B, 30, elapsed_ms=700))
        assert profile(guide).slow_ms == pytest.approx(2_100.0)
        tell(guide, *pages("https://c.org/", 101, elapsed_ms=10))
        assert profile(guide).slow_ms == 1_000.0
        tell(guide, *pages("https://d.org/", 101, elapsed_ms=60_000))
        assert profile(guide).slow_ms == 30_000.0


@pytest.mark.parametrize(("given", "cost"), [(0, 0.1), (1_000, 0.5), ("auto", 0.25)])
def test_a_slow_host_costs_by_the_crawls_own_measure(given: object, cost: float) -> None:
    with opened(slow_domain_ms=given) as guide:
        tell(guide, *pages(A, 30, elapsed_ms=1_000 / 1.5))
        tell(guide, *pages("https://slow.org/", 15, elapsed_ms=1_000), fetched(B, "https://slow.org/new", bytes=1))
        (one,) = [one for one in ask(guide)["assigned_urls"] if one["url"] == "https://slow.org/new"]
        assert one["terms"]["cost"] == pytest.approx(-0.2 * cost, abs=0.01)


def test_where_everything_fails_no_host_is_blamed_for_it() -> None:
    with opened(unreliable_threshold="auto") as guide:
        assert profile(guide).unreliable == pytest.approx(0.8)
        tell(guide, *pages(A, 200))
        assert profile(guide).unreliable < 0.55
        tell(guide, *({"url": f"https://h{n}.org/", "error": "timeout"} for n in range(800)))
        assert profile(guide).unreliable > 0.85


def test_a_host_that_fails_half_of_the_time_is_skipped_in_a_crawl_that_goes_well() -> None:
    failures = [{"url": f"{A}x{number}", "status": 500} for number in range(6)]
    for threshold, skipped in ((0.8, False), ("auto", True)):
        with opened(unreliable_threshold=threshold, max_retries=0) as guide:
            tell(guide, *pages(B, 300), *pages(A, 4), *failures)
            guide.seed("default", [f"{A}new"])
            guide._run(guide._guide._guide.store.control("a.org", block_until=NOW))
            candidates = batch([A], pages=[4.0], failures=[6.0], errors=[6.0], last_fetch=[NOW])
            rule = guide._guide._guide.crawls.known.popitem()[1].filter(domains.Domains)
            assert rule is not None
            assert bool(rule.unreliable(candidates.hosts, NOW)[0]) is skipped


def test_a_domain_that_pays_more_than_the_others_may_give_more_pages() -> None:
    rule = domains.build(Definition(policy=Policy(domain_max_pages="auto")))
    rule.profile.sheet.rows[0]["judged"], rule.profile.sheet.rows[0]["relevance"] = 100, 30
    found = batch([A, B], judged=[10.0, 10.0], relevance_sum=[9.0, 1.0], domain_pages=[500.0, 500.0])
    assert rule.most(found.hosts).tolist() == [MOST, FEWEST]
    assert rule.keep(found, question()).tolist() == [True, False]


def test_when_nothing_else_is_left_a_domain_goes_on() -> None:
    with opened(domain_max_pages="auto") as guide:
        tell(guide, *pages(A, 100, relevance=0.5))
        guide.seed("default", [f"{A}more", f"{A}and-more"])
        assert asked(guide) == []  # but it gives way
        assert len(asked(guide)) == 2


def test_while_there_is_something_else_it_does_not() -> None:
    with opened(domain_max_pages="auto") as guide:
        tell(guide, *pages(A, 100, relevance=0.5), *pages(B, 10, relevance=0.9))
        guide.seed("default", [f"{A}more", f"{B}more"])
        assert asked(guide) == [f"{B}more"]
        told = {one["name"]: one for one in guide.explain("default", f"{A}more")["filters"]}
        assert told["domains"]["why"] == "its domain gave 100 pages, policy.domain_max_pages is 100 by what it has met"


def test_what_was_learned_outlives_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as guide:
        tell(guide, *pages(A, 40, elapsed_ms=700))
        learned = profile(guide).slow_ms, profile(guide).unreliable
    with Guide.open(tmp_path / "data", clock=ManualClock(NOW)) as guide:
        asked(guide)
        assert (profile(guide).slow_ms, profile(guide).unreliable) == learned
        assert learned[0] == pytest.approx(2_100.0)


@pytest.mark.parametrize("field", ["slow_domain_ms", "domain_max_pages", "unreliable_threshold"])
def test_another_word_than_auto_is_refused_by_name(field: str) -> None:
    with Guide.open(":memory:") as guide, pytest.raises(MalformedRequest, match=f"policy.{field}"):
        guide.define("default", {"policy": {field: "often"}})


# leases at once


def test_a_host_holds_no_more_leases_at_once_than_the_crawl_says() -> None:
    with opened(max_leases_per_host=2) as guide:
        guide.seed("default", [f"{A}{number}" for number in range(5)] + [B])
        first = asked(guide)
        assert sorted(url[:14] for url in first) == [A, A, B]
        assert asked(guide, crawler_id="c-2") == []
        tell(guide, fetched(next(url for url in first if url.startswith(A))))
        assert len(asked(guide, crawler_id="c-2")) == 1


def test_the_tighter_bound_of_crawl_and_operator_counts() -> None:
    with opened(max_leases_per_host=3) as guide:
        guide.seed("default", [f"{A}{number}" for number in range(5)])
        guide._run(guide._guide._guide.store.control("a.org", limit=1))
        assert len(asked(guide)) == 1
