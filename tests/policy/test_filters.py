"""Every filter keeps the same promises; then each by its own sentences."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from crawlguide import policy
from crawlguide.core import plugs
from crawlguide.core.definition import Definition, Policy
from crawlguide.core.protocols import Filter
from crawlguide.policy import budget, diversity, domains, politeness, scope, seen
from tests.support import NOW, batch, question

KINDS = plugs.kinds(policy)
REFUSALS = {"pass", "defer", "withhold", "forbid", "either", "shut"}
MANY = [f"https://{host}.org/{page}" for page in range(4) for host in "abc"]
A = [f"https://a.org/{page}" for page in range(5)]


def default(kind: str) -> Filter:
    built: Filter = plugs.module(policy, kind, "guide.filters").build(Definition())
    return built


def ruled(**rules: object) -> Definition:
    return Definition(policy=Policy(**rules))  # type: ignore[arg-type]


# what every filter promises


def test_there_are_filters_to_walk_through() -> None:
    assert set(KINDS) >= {"budget", "diversity", "domains", "politeness", "scope", "seen"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_filter_is_named_as_its_file(kind: str) -> None:
    assert default(kind).name == kind.replace("-", "_")


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_is_one_of_few_words(kind: str) -> None:
    assert default(kind).refusal in REFUSALS


@pytest.mark.parametrize("kind", KINDS)
def test_keep_gives_a_mask_as_long_as_the_batch(kind: str) -> None:
    candidates = batch(MANY, estimated_ms=[500.0] * 12, estimated_bytes=[1_000.0] * 12)
    keep = default(kind).keep(candidates, question())
    assert (keep.dtype.name, keep.shape) == ("bool", (12,))


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_batch_gives_an_empty_mask(kind: str) -> None:
    keep = default(kind).keep(batch([]), question())
    assert (keep.dtype.name, keep.shape) == ("bool", (0,))


@pytest.mark.parametrize("kind", KINDS)
def test_a_filter_never_changes_the_batch(kind: str) -> None:
    candidates = batch(
        MANY, estimated_ms=[500.0] * 12, estimated_bytes=[1_000.0] * 12, failures=[20, 0, 1], errors=[20, 0, 1]
    )
    before = pickle.dumps(candidates)
    default(kind).keep(candidates, question())
    assert pickle.dumps(candidates) == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_filter_says_the_same_when_asked_again(kind: str) -> None:
    candidates = batch(MANY, estimated_ms=[500.0] * 12, estimated_bytes=[1_000.0] * 12)
    rule = default(kind)
    assert rule.keep(candidates, question()).tolist() == rule.keep(candidates, question()).tolist()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if default(kind).refusal == "defer"])
def test_a_filter_that_defers_says_how_long_each_row_waits(kind: str) -> None:
    rule = plugs.module(policy, kind, "guide.filters").build(Definition())
    wait = rule.wait(batch(MANY), question())
    assert wait.shape == (12,)
    assert (wait >= 0).all()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if default(kind).refusal == "withhold"])
def test_a_filter_that_withholds_says_until_when_for_each_host(kind: str) -> None:
    rule = plugs.module(policy, kind, "guide.filters").build(Definition())
    assert rule.until(batch(MANY).hosts, question()).shape == (3,)


# seen


def test_a_url_twice_in_one_batch_is_kept_once() -> None:
    candidates = batch(A[:2]).take(np.array([1, 0, 1]))
    assert seen.build(Definition()).keep(candidates, question()).tolist() == [True, True, False]


# scope


def inside(url: str, **rules: object) -> bool:
    return bool(scope.build(ruled(**rules)).keep(batch([url]), question())[0])


def test_without_lists_everything_is_in_scope() -> None:
    assert inside("https://anything.org/")


def test_an_allowed_domain_is_in_scope() -> None:
    assert inside("https://a.org/", allow_domains=("a.org",))


def test_what_is_not_allowed_is_out_of_scope() -> None:
    assert not inside("https://b.org/", allow_domains=("a.org",))


def test_sub_domains_of_an_allowed_domain_are_in_scope() -> None:
    assert inside("https://x.y.a.org/", allow_domains=("a.org",))


def test_the_parent_of_an_allowed_domain_is_out_of_scope() -> None:
    assert not inside("https://a.org/", allow_domains=("x.a.org",))


def test_a_name_that_only_ends_alike_is_out_of_scope() -> None:
    assert not inside("https://nota.org/", allow_domains=("a.org",))


def test_a_denied_domain_is_out_of_scope() -> None:
    assert not inside("https://a.org/", deny_domains=("a.org",))


def test_sub_domains_of_a_denied_domain_are_out_of_scope() -> None:
    assert not inside("https://x.a.org/", deny_domains=("a.org",))


def test_deny_wins_over_allow() -> None:
    assert not inside("https://x.a.org/", allow_domains=("x.a.org",), deny_domains=("a.org",))


def test_what_is_not_denied_is_in_scope() -> None:
    assert inside("https://b.org/", deny_domains=("a.org",))


def test_case_and_dots_at_the_ends_of_a_listed_domain_do_not_matter() -> None:
    assert inside("https://a.org/", allow_domains=(".A.Org.",))


def test_a_port_does_not_take_a_host_out_of_scope() -> None:
    assert inside("https://a.org:8443/", allow_domains=("a.org",))


def test_a_whole_suffix_can_be_denied() -> None:
    assert not inside("https://a.org/", deny_domains=("org",))


def test_an_address_has_no_parents() -> None:
    assert inside("http://10.0.0.1/", deny_domains=("0.0.1", "1"))


def test_an_address_can_be_listed_itself() -> None:
    assert not inside("http://10.0.0.1:8080/", deny_domains=("10.0.0.1",))


def test_an_address_of_version_6_has_no_parents_and_can_be_listed_itself() -> None:
    assert not inside("http://[::1]:8080/", deny_domains=("[::1]",))


def test_an_international_domain_can_be_listed_as_people_write_it() -> None:
    assert inside("https://xn--bcher-kva.example/", allow_domains=("bücher.example",))


def test_out_of_scope_is_for_ever() -> None:
    assert scope.build(Definition()).refusal == "forbid"


# domains


def full(pages: list[int], most: int) -> list[bool]:
    rule = domains.build(ruled(domain_max_pages=most))
    kept: list[bool] = rule.keep(batch(["https://a.org/", "https://b.org/"], domain_pages=pages), question()).tolist()
    return kept


def failing(pages: int, errors: int, last_fetch: float = NOW - 1.0, **rules: object) -> bool:
    """Is the host refused after so many pages and errors?"""
    candidates = batch(["https://a.org/"], pages=pages, failures=errors, errors=errors, last_fetch=last_fetch)
    return not domains.build(ruled(**rules)).keep(candidates, question())[0]


def test_a_domain_below_its_cap_is_kept_and_one_at_its_cap_is_not() -> None:
    assert full([9, 10], most=10) == [True, False]


def test_without_a_cap_no_domain_is_full() -> None:
    assert full([10, 1_000_000], most=0) == [True, True]


def test_a_full_domain_stays_out_for_a_while_since_what_is_on_its_way_may_fail() -> None:
    hosts = batch(["https://a.org/"], domain_pages=[10]).hosts
    assert domains.build(ruled(domain_max_pages=10)).until(hosts, question()).tolist() == [NOW + 30.0]


def test_a_host_that_fails_most_of_the_time_is_refused() -> None:
    assert failing(pages=1, errors=9)


def test_a_host_at_the_threshold_is_kept() -> None:
    assert not failing(pages=2, errors=8)


def test_too_few_failures_prove_nothing() -> None:
    assert not failing(pages=0, errors=9)


def test_the_threshold_can_be_set() -> None:
    assert failing(pages=2, errors=8, unreliable_threshold=0.5)


def test_how_many_tries_prove_it_can_be_set() -> None:
    assert failing(pages=0, errors=3, unreliable_after=3)


def test_an_unreliable_host_is_refused_for_just_under_ten_minutes() -> None:
    assert failing(pages=0, errors=10, last_fetch=NOW - 599.0)


def test_an_unreliable_host_is_probed_after_ten_minutes() -> None:
    assert not failing(pages=0, errors=10, last_fetch=NOW - 600.0)


def test_an_unreliable_host_stays_out_until_its_next_probe() -> None:
    hosts = batch(["https://a.org/"], failures=10, errors=10, last_fetch=NOW - 100.0).hosts
    assert domains.build(Definition()).until(hosts, question()).tolist() == [NOW + 500.0]


def test_missing_pages_do_not_make_a_host_unreliable() -> None:
    candidates = batch(["https://a.org/"], pages=0, failures=50, errors=0, last_fetch=NOW)
    assert domains.build(Definition()).keep(candidates, question()).all()


def test_one_unreliable_host_does_not_harm_another() -> None:
    candidates = batch(["https://a.org/", "https://b.org/"], failures=[10, 0], errors=[10, 0], last_fetch=NOW)
    assert domains.build(Definition()).keep(candidates, question()).tolist() == [False, True]


# politeness


def waits(urls: list[str], definition: Definition | None = None, **columns: object) -> list[float]:
    rule = politeness.build(definition or Definition())
    told: list[float] = rule.wait(batch(urls, **columns), question()).tolist()
    return told


def polite(urls: list[str], definition: Definition, **columns: object) -> list[bool]:
    kept: list[bool] = politeness.build(definition).keep(batch(urls, **columns), question()).tolist()
    return kept


def test_each_further_url_of_a_host_waits_one_delay_longer() -> None:
    assert waits(A, ruled(default_delay_s=2.0)) == [0.0, 2.0, 4.0, 6.0, 8.0]


def test_hosts_do_not_wait_for_each_other() -> None:
    assert waits(["https://a.org/1", "https://b.org/1", "https://a.org/2", "https://b.org/2"]) == [0.0, 0.0, 1.0, 1.0]


def test_without_a_delay_nobody_waits() -> None:
    assert waits(A, ruled(default_delay_s=0.0)) == [0.0] * 5


def test_the_own_delay_of_a_host_is_over_the_default() -> None:
    assert waits(A[:3], crawl_delay=3.0) == [0.0, 3.0, 6.0]


def test_the_first_url_waits_until_the_host_opens() -> None:
    assert waits(A[:2], next_fetch=[NOW + 2.5]) == [2.5, 3.5]


def test_the_first_url_waits_one_delay_after_the_last_fetch() -> None:
    assert waits(A[:1], ruled(default_delay_s=4.0), last_fetch=NOW - 1.0) == [3.0]


def test_what_must_wait_longer_than_the_horizon_is_deferred() -> None:
    assert polite(A, ruled(default_delay_s=2.0, horizon_s=5.0)) == [True, True, True, False, False]


def test_nothing_is_given_that_could_only_start_after_the_timeout() -> None:
    rule = politeness.build(ruled(default_delay_s=1.0, horizon_s=5.0))
    assert rule.keep(batch(A), question(timeout_ms=2_000)).tolist() == [True, True, True, False, False]


def test_strict_allows_one_url_of_a_host() -> None:
    assert polite(A, ruled(strict=True, default_delay_s=0.0)) == [True, False, False, False, False]


def test_strict_allows_none_while_one_is_with_a_crawler() -> None:
    assert polite(A[:2], ruled(strict=True, default_delay_s=0.0), leases=1) == [False, False]


def test_a_limit_allows_so_many_at_once() -> None:
    assert polite(A, ruled(default_delay_s=0.0), limit=2) == [True, True, False, False, False]


def test_what_is_with_crawlers_counts_towards_a_limit() -> None:
    assert polite(A[:3], ruled(default_delay_s=0.0), limit=2, leases=1) == [True, False, False]


def test_impolite_now_is_not_for_ever() -> None:
    assert politeness.build(Definition()).refusal == "defer"


# diversity


def test_one_host_gives_at_most_so_many_to_one_answer() -> None:
    assert diversity.build(ruled(max_per_host=2)).keep(batch(A), question()).tolist() == [True, True] + [False] * 3


def test_every_host_has_its_own_share() -> None:
    kept = diversity.build(ruled(max_per_host=1)).keep(batch(MANY[:6]), question())
    assert kept.tolist() == [True] * 3 + [False] * 3


def test_zero_means_no_bound_per_host() -> None:
    assert diversity.build(ruled(max_per_host=0)).keep(batch(A), question()).all()


# budget


def fits(size: list[float], ms: list[float] | None = None, **limits: object) -> list[bool]:
    candidates = batch(A[: len(size)], estimated_bytes=size, estimated_ms=ms or [1.0] * len(size))
    kept: list[bool] = budget.build(Definition()).keep(candidates, question(**limits)).tolist()  # type: ignore[arg-type]
    return kept


def test_no_more_urls_than_asked_for() -> None:
    assert fits([1.0] * 5, max_urls=2) == [True, True, False, False, False]


def test_without_a_bound_on_bytes_size_does_not_matter() -> None:
    assert fits([1e15] * 3) == [True] * 3


def test_bytes_together_stay_within_the_budget() -> None:
    assert fits([40.0, 40.0, 40.0], max_bytes=100) == [True, True, False]


def test_bytes_may_fill_the_budget_to_the_last() -> None:
    assert fits([60.0, 40.0], max_bytes=100) == [True, True]


def test_one_huge_file_does_not_starve_the_rest() -> None:
    assert fits([10.0, 1_000.0, 20.0, 30.0], max_bytes=100) == [True, False, True, True]


def test_a_file_passed_over_makes_room_for_the_next_url() -> None:
    assert fits([1_000.0, 1.0, 1.0, 1.0], max_bytes=100, max_urls=2) == [False, True, True, False]


def test_time_together_stays_within_timeout_times_concurrency() -> None:
    assert fits([1.0] * 4, [900.0] * 4, timeout_ms=1_000, concurrency=2) == [True, True, False, False]


def test_one_slow_page_does_not_starve_the_rest() -> None:
    assert fits([1.0] * 3, [5_000.0, 500.0, 500.0], timeout_ms=1_000, concurrency=1) == [False, True, True]


def test_a_budget_of_no_bytes_allows_nothing_that_weighs() -> None:
    assert fits([1.0, 1.0], max_bytes=0) == [False, False]


def test_what_does_not_fit_is_only_not_in_this_answer() -> None:
    assert budget.build(Definition()).refusal == "pass"
