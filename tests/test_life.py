"""A crawl while it runs: crawlers that leave or have bounds of their own, bans and priorities, changed scopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crawlguide import Guide
from crawlguide.core.errors import MalformedRequest, NotFound
from crawlguide.core.types import Crawl
from crawlguide.guide import crawls as crawls_module
from crawlguide.testing import ManualClock
from tests.support import ask, asked, fetched, state_of, tell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

UNPACED = {"default_delay_s": 0, "max_per_host": 0}
A, B = "https://a.org/", "https://b.org/"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def guide(clock: ManualClock) -> Iterator[Guide]:
    with Guide.open(":memory:", clock=clock) as opened:
        opened.define("default", {"policy": UNPACED})
        yield opened


def pages(count: int, host: str = A) -> list[str]:
    return [f"{host}{number}" for number in range(count)]


def numbers(guide: Guide) -> dict[str, Any]:
    found: dict[str, Any] = guide.stats("default")["crawls"]["default"]
    return found


def policy(guide: Guide, **more: Any) -> None:
    guide.define("default", {"policy": UNPACED | more})


# a crawler leaves


def test_what_a_crawler_holds_goes_back(guide: Guide) -> None:
    guide.seed("default", pages(5))
    given = asked(guide, "c-1", 3)
    assert guide.release("default", "c-1") == 3
    assert set(asked(guide, "c-2", 9)) >= set(given)


def test_releasing_twice_gives_nothing_back_twice(guide: Guide) -> None:
    guide.seed("default", pages(2))
    asked(guide, "c-1")
    assert [guide.release("default", "c-1"), guide.release("default", "c-1")] == [2, 0]


def test_others_keep_what_they_hold(guide: Guide) -> None:
    guide.seed("default", pages(4))
    asked(guide, "c-1", 2)
    held = asked(guide, "c-2", 2)
    guide.release("default", "c-1")
    assert [state_of(guide, url) for url in held] == ["leased", "leased"]


def test_what_ended_by_itself_is_not_counted_as_released(guide: Guide, clock: ManualClock) -> None:
    guide.seed("default", pages(2))
    asked(guide, "c-1")
    clock.advance(1_000.0)
    assert guide.release("default", "c-1") == 0


def test_a_release_is_neither_a_fetch_nor_a_failure(guide: Guide) -> None:
    guide.seed("default", pages(2))
    asked(guide, "c-1")
    guide.release("default", "c-1")
    found = numbers(guide)
    assert (found["queued"], found["leased"], found["fetches"], found["failed"]) == (2, 0, 0, 0)


def test_releasing_in_a_crawl_that_is_not_there_makes_none(guide: Guide) -> None:
    with pytest.raises(NotFound):
        guide.release("nobody", "c-1")
    assert "nobody" not in guide.stats()["crawls"]


@pytest.mark.parametrize("crawler", ["", "x" * 201, 7, None])
def test_a_crawler_without_a_name_is_refused_by_name(guide: Guide, crawler: Any) -> None:
    with pytest.raises(MalformedRequest) as wrong:
        guide.release("default", crawler)
    assert wrong.value.field == "crawler_id"


def test_a_release_survives_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        guide.define("default", {"policy": UNPACED})
        guide.seed("default", pages(3))
        asked(guide, "c-1")
        assert guide.release("default", "c-1") == 3
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        assert numbers(guide)["leased"] == 0
        assert len(asked(guide, "c-2")) == 3


# crawlers with bounds of their own


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


# bans


BANS = [{"urls": [A + "1#part"]}, {"hosts": ["A.org"]}, {"patterns": ["/1$"]}]


@pytest.mark.parametrize("ban", BANS)
def test_what_is_banned_is_dropped_and_comes_back_when_it_is_not(guide: Guide, ban: dict[str, Any]) -> None:
    guide.seed("default", [A + "1", B + "2"])
    guide.edit_rules("default", {"ban": ban})
    assert asked(guide) == [B + "2"]
    assert numbers(guide)["dropped"] == {"banned": 1}
    guide.edit_rules("default", {"unban": ban})
    assert asked(guide) == [A + "1"]
    assert numbers(guide)["dropped"] == {}


@pytest.mark.parametrize("ban", BANS)
def test_what_is_banned_is_dropped_on_sight(guide: Guide, ban: dict[str, Any]) -> None:
    guide.edit_rules("default", {"ban": ban})
    guide.seed("default", [A + "1"])
    tell(guide, fetched(B, A + "1", "https://a.org:8080/1"))
    banned_by_host_too = 2 if "urls" not in ban else 1
    assert numbers(guide)["dropped"] == {"banned": banned_by_host_too}


def test_a_host_is_banned_without_its_sub_domains(guide: Guide) -> None:
    guide.edit_rules("default", {"ban": {"hosts": ["a.org"]}})
    guide.seed("default", [A, "https://www.a.org/"])
    assert asked(guide) == ["https://www.a.org/"]


def test_what_a_crawler_holds_when_it_is_banned_is_not_given_again(guide: Guide, clock: ManualClock) -> None:
    guide.seed("default", [A, B])
    asked(guide, "c-1")
    guide.edit_rules("default", {"ban": {"hosts": ["a.org"]}})
    clock.advance(1_000.0)
    assert asked(guide, "c-2") == [B]
    assert state_of(guide, A) == "dropped"


def test_a_link_to_what_is_no_longer_banned_brings_it_back(guide: Guide, monkeypatch: pytest.MonkeyPatch) -> None:
    guide.edit_rules("default", {"ban": {"hosts": ["a.org"]}})
    guide.seed("default", [A])
    monkeypatch.setattr(crawls_module, "PAGES_AT_ONCE", 0)  # nothing is renewed at once
    guide.edit_rules("default", {"unban": {"hosts": ["a.org"]}})
    assert state_of(guide, A) == "dropped"
    tell(guide, fetched(B, A))
    assert state_of(guide, A) == "queued"


def test_what_is_unbanned_but_out_of_scope_stays_out(guide: Guide) -> None:
    guide.seed("default", [A])
    guide.edit_rules("default", {"ban": {"urls": [A]}})
    policy(guide, deny_domains=["a.org"])
    assert state_of(guide, A) == "dropped"
    policy(guide)
    assert asked(guide) == [A]


def test_what_is_banned_and_unbanned_at_once_is_not_banned(guide: Guide) -> None:
    edit = {"ban": {"hosts": ["a.org", "b.org"]}, "unban": {"hosts": ["a.org"]}}
    assert guide.edit_rules("default", edit)["ban"]["hosts"] == ["b.org"]


def test_explain_names_the_rule_that_bans(guide: Guide) -> None:
    guide.seed("default", [A + "archive/1"])
    guide.edit_rules("default", {"ban": {"patterns": ["/archive/"]}})
    found = guide.explain("default", A + "archive/1")
    assert (found["state"], found["reason"]) == ("dropped", "banned")
    assert {"name": "banned", "verdict": "forbid", "why": "rules.ban.patterns holds '/archive/'"} in found["filters"]
    assert found["needs"] == ["it is unbanned: rules.ban.patterns holds '/archive/'"]
    with pytest.raises(NotFound, match=r"rules\.ban\.patterns holds"):
        guide.explain("default", A + "archive/2")


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        ({"ban": {"patterns": ["ok", "("]}}, "ban.patterns[1]"),
        ({"ban": {"patterns": ["(?=x)"]}}, "ban.patterns[0]"),
        ({"ban": {"patterns": [r"\Qa"]}}, "ban.patterns[0]"),
        ({"ban": {"patterns": [""]}}, "ban.patterns[0]"),
        ({"ban": {"patterns": ["x" * 1_001]}}, "ban.patterns[0]"),
        ({"ban": {"urls": ["ftp://a.org/"]}}, "ban.urls[0]"),
        ({"unban": {"hosts": ["no host"]}}, "unban.hosts[0]"),
        ({"priority": {"urls": {A: 2}}}, "priority.urls[...]"),
        ({"priority": {"hosts": {"a.org": -1}}}, "priority.hosts[...]"),
        ({"priority": {"patterns": {"[": 1}}}, "priority.patterns"),
        ({"prioritie": {}}, "prioritie"),
    ],
)
def test_a_wrong_rule_is_refused_by_name_and_changes_nothing(guide: Guide, edit: dict[str, Any], field: str) -> None:
    before = guide.edit_rules("default", {"ban": {"hosts": ["a.org"]}})
    with pytest.raises(MalformedRequest) as wrong:
        guide.edit_rules("default", edit)
    assert wrong.value.field == field
    assert guide.rules("default") == before


def test_rules_of_a_crawl_that_is_not_there_are_not_found(guide: Guide) -> None:
    with pytest.raises(NotFound):
        guide.rules("nobody")
    with pytest.raises(NotFound):
        guide.edit_rules("nobody", {})


def test_a_new_definition_replaces_the_rules_with_all_the_rest(guide: Guide) -> None:
    guide.edit_rules("default", {"ban": {"hosts": ["a.org"]}, "priority": {"urls": {A: 0.5}}})
    guide.define("default", {"policy": UNPACED})
    assert guide.rules("default") == {
        "ban": {"urls": [], "hosts": [], "patterns": []},
        "priority": {"urls": {}, "hosts": {}, "patterns": {}},
    }


def test_rules_survive_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        policy(guide)
        guide.seed("default", [A, B])
        rules = guide.edit_rules("default", {"ban": {"hosts": ["a.org"]}, "priority": {"patterns": {"x": 2}}})
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        assert guide.rules("default") == rules
        assert asked(guide) == [B]


# priorities


def test_the_priority_of_a_url_counts_at_once(guide: Guide) -> None:
    guide.seed("default", pages(10))
    guide.edit_rules("default", {"priority": {"urls": {A + "7": 1.0, A + "8": 0.0}}})
    given = asked(guide, "c-1", 10)
    assert (given[0], given[-1]) == (A + "7", A + "8")


def test_the_priority_of_a_url_counts_when_it_is_found_later(guide: Guide) -> None:
    guide.edit_rules("default", {"priority": {"urls": {A + "7": 0.9}}})
    tell(guide, fetched(B, *pages(10), relevance=0.2))
    assert asked(guide, "c-1", 1) == [A + "7"]


def test_null_lifts_a_priority(guide: Guide) -> None:
    tell(guide, fetched(B, *pages(3), relevance=0.2))
    before = guide.explain("default", A + "2")["p"]
    guide.edit_rules("default", {"priority": {"urls": {A + "2": 0.9}}})
    assert guide.explain("default", A + "2")["p"] == 0.9
    rules = guide.edit_rules("default", {"priority": {"urls": {A + "2": None}}})
    assert rules["priority"]["urls"] == {}
    assert guide.explain("default", A + "2")["p"] == pytest.approx(before)


@pytest.mark.parametrize(
    "priority", [{"hosts": {"a.org": 0.1}}, {"patterns": {"^https://a": 0.1}}, {"hosts": {"b.org": 10}}]
)
def test_a_factor_weighs_what_waits_and_what_comes(guide: Guide, priority: dict[str, Any]) -> None:
    guide.define("default", {"policy": UNPACED, "strategy": {"kind": "best-first"}})
    tell(guide, fetched("https://c.org/", A + "1", B + "1", relevance=0.5))
    guide.edit_rules("default", {"priority": priority})
    assert asked(guide, "c-1", 1) == [B + "1"]
    tell(guide, fetched("https://c.org/2", A + "2", B + "2", relevance=0.5))
    assert asked(guide, "c-1", 1) == [B + "2"]


def test_factors_multiply_and_explain_names_them(guide: Guide) -> None:
    tell(guide, fetched(B, A + "old/1", relevance=0.8))
    before = guide.explain("default", A + "old/1")["p"]
    guide.edit_rules("default", {"priority": {"hosts": {"a.org": 0.5}, "patterns": {"/old/": 0.1, "/new/": 3}}})
    found = guide.explain("default", A + "old/1")
    assert found["p"] == pytest.approx(before * 0.05)
    assert found["rules"] == [
        "rules.priority.hosts weighs a.org by 0.5",
        "rules.priority.patterns weighs '/old/' by 0.1",
    ]
    assert all(rule in found["words"] for rule in found["rules"])


@pytest.mark.parametrize("weights", [{"org": 3, "a.org": 0.1}, {"b.org": 10}, {"B.ORG.": 10, "a.org": -1}])
def test_domains_weigh_with_all_hosts_below_them(guide: Guide, weights: dict[str, float]) -> None:
    guide.define("default", {"policy": UNPACED, "strategy": {"kind": "best-first"}})
    tell(guide, fetched("https://c.org/", "https://www.a.org/1", "https://www.b.org/1", relevance=0.5))
    guide.define("default", {"policy": {**UNPACED, "domain_weights": weights}, "strategy": {"kind": "best-first"}})
    assert asked(guide, "c-1", 1) == ["https://www.b.org/1"]
    smallest = next(name for name in ("a.org", "org", "") if name in weights or not name)
    said = [f"policy.domain_weights weighs {smallest} by {weights[smallest]:g}"] if smallest else []
    assert guide.explain("default", "https://www.a.org/1")["rules"] == said


def test_a_weight_of_what_is_no_domain_is_refused(guide: Guide) -> None:
    with pytest.raises(MalformedRequest, match=r"policy\.domain_weights: expected a domain, got 'a b'"):
        guide.define("default", {"policy": {"domain_weights": {"a b": 1}}})


def test_a_priority_set_by_hand_is_not_weighed(guide: Guide) -> None:
    guide.seed("default", [{"url": A, "priority": 0.7}])
    guide.edit_rules("default", {"priority": {"hosts": {"a.org": 0.1}}})
    assert guide.explain("default", A)["p"] == 0.7


# what waits already is judged anew, some at a time


def waiting(guide: Guide) -> int:
    return int(numbers(guide)["queued"])


def test_a_large_frontier_is_renewed_in_steps_and_not_in_the_request(
    guide: Guide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawls_module, "RENEWED_AT_ONCE", 50)
    monkeypatch.setattr(crawls_module, "PAGES_AT_ONCE", 2)
    guide.seed("default", pages(500))
    guide.edit_rules("default", {"ban": {"patterns": ["/[0-9]+$"]}})
    left = [waiting(guide)]
    assert 300 <= left[0] < 500
    while left[-1]:
        guide._run(guide._guide._guide.upkeep())
        left.append(waiting(guide))
        assert left[-1] < left[-2]
    assert numbers(guide)["dropped"] == {"banned": 500}


def test_without_upkeep_asks_bring_it_to_its_end(guide: Guide, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawls_module, "PAGES_AT_ONCE", 0)
    tell(guide, fetched("https://c.org/", *pages(1_000), relevance=0.9))
    tell(guide, fetched("https://c.org/2", B, relevance=0.1))
    guide.edit_rules("default", {"priority": {"hosts": {"a.org": 0.0}}})
    for _ in range(11):
        asked(guide, "c-1", 1)
    assert state_of(guide, B) == "leased"


def test_a_restart_in_the_middle_begins_it_anew(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawls_module, "PAGES_AT_ONCE", 2)  # one for those that were dropped before, of which are none
    monkeypatch.setattr(crawls_module, "RENEWED_AT_ONCE", 100)
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        policy(guide)
        guide.seed("default", pages(250))
        guide.edit_rules("default", {"ban": {"hosts": ["a.org"]}})
        assert waiting(guide) == 150
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        guide.rules("default")
        for _ in range(3):
            guide._run(guide._guide._guide.upkeep())
        assert waiting(guide) == 0


# definitions changed in parts


def test_a_patch_changes_what_it_names_and_nothing_else(guide: Guide) -> None:
    guide.define("default", {"goal": {"topic": "tea"}, "policy": UNPACED | {"max_retries": 7}})
    found = guide.patch("default", {"policy": {"deny_domains": ["a.org"]}, "limits": {"max_pages": 9}})
    assert found["crawl_id"] == "default"
    definition = found["definition"]
    assert (definition["goal"]["topic"], definition["policy"]["max_retries"]) == ("tea", 7)
    assert (definition["policy"]["deny_domains"], definition["limits"]["max_pages"]) == (["a.org"], 9)


def test_a_scope_changes_while_the_crawl_runs(guide: Guide) -> None:
    guide.patch("default", {"policy": {"allow_domains": ["b.org"]}})
    guide.seed("default", [A, B])
    assert asked(guide) == [B]
    guide.patch("default", {"policy": {"allow_domains": []}})
    assert asked(guide) == [A]


def test_null_brings_a_field_back_to_its_default(guide: Guide) -> None:
    found = guide.patch("default", {"policy": {"max_per_host": None}, "limits": None})
    assert found["definition"]["policy"]["max_per_host"] == 5
    assert found["definition"]["policy"]["default_delay_s"] == 0


def test_a_patch_keeps_rules_and_a_pause(guide: Guide) -> None:
    guide.edit_rules("default", {"ban": {"hosts": ["a.org"]}})
    guide.pause("default")
    found = guide.patch("default", {"goal": {"topic": "tea"}})
    assert found["state"] == "paused"
    assert found["definition"]["rules"]["ban"]["hosts"] == ["a.org"]


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"polcy": {}}, "polcy"),
        ({"polcy": None}, "polcy"),
        ({"policy": {"alow_domains": None}}, "policy.alow_domains"),
        ({"policy": {"crawlers": {"c.1": {"max": None}}}}, "policy.crawlers.c.1.max"),
        ({"policy": {"max_per_host": -1}}, "policy.max_per_host"),
        ({"policy": 7}, "policy"),
        ({"strategy": {"kind": "nobody"}}, "strategy.kind"),
    ],
)
def test_a_wrong_patch_is_refused_by_name(guide: Guide, patch: dict[str, Any], field: str) -> None:
    before = guide.patch("default", {})
    with pytest.raises(MalformedRequest) as wrong:
        guide.patch("default", patch)
    assert wrong.value.field == field
    assert guide.patch("default", {}) == before


def test_a_crawl_that_is_not_there_is_not_patched_into_being(guide: Guide) -> None:
    with pytest.raises(NotFound):
        guide.patch("nobody", {})


# what was learned


def predictor(guide: Guide) -> Any:
    inner = guide._guide._guide
    return guide._run(inner.crawls.get(Crawl("default", "default"), inner.clock.now())).strategy.predictor


def test_a_rule_or_a_patch_leaves_what_was_learned_and_another_strategy_begins_anew(guide: Guide) -> None:
    before = predictor(guide)
    guide.edit_rules("default", {"ban": {"hosts": ["a.org"]}})
    guide.patch("default", {"limits": {"max_pages": 7}})
    assert predictor(guide) is before
    guide.patch("default", {"strategy": {"kind": "random"}})
    assert predictor(guide) is not before
