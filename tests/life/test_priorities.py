"""URLs, hosts and patterns that people weigh while a crawl runs."""

from __future__ import annotations

from typing import Any

import pytest

from crawlguide import Guide
from crawlguide.core.errors import MalformedRequest
from tests.guide.common import UNPACED
from tests.life.common import A, B, pages
from tests.support import asked, fetched, tell


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
