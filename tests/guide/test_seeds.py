"""Seeds have priorities and bounds on depth of their own."""

from __future__ import annotations

import pytest

from crawlguide import Guide
from crawlguide.core.errors import MalformedRequest
from tests.guide.common import UNPACED, A
from tests.support import asked, fetched, state_of, tell


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
