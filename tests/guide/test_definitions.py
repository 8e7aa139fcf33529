"""What a definition says of weights, scope, caps and recrawl."""

from __future__ import annotations

import pytest

from crawlguide import Guide
from crawlguide.core.errors import MalformedRequest
from crawlguide.testing import ManualClock
from tests.guide.common import HOSTS, UNPACED, A, stats
from tests.support import ask, asked, fetched, tell


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
