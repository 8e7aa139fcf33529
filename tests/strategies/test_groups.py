"""`groups`: feedstock's focused crawl, mended; and as it was, with `faithful`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlguide.core.errors import MalformedRequest
from crawlguide.strategies.groups.faithful import updated
from crawlguide.strategies.groups.link_groups import merged, merged_by_page, merges, state_of
from tests.strategies.site import HOME, crawled, harvest, opened, web
from tests.support import ask, asked, fetched, tell

A, B = "https://a.org/", "https://b.org/"


def learned(guide: Any) -> dict[str, float]:
    found: dict[str, float] = guide.stats("default")["crawls"]["default"]["learner"]
    return found


def order(strategy: dict[str, Any], *, backwards: bool, pages: int = 60) -> list[str]:
    with opened({"kind": "groups", **strategy}) as guide:
        guide.seed("default", [HOME])
        return crawled(guide, web(backwards=backwards), pages)


def test_the_order_of_links_on_a_page_changes_nothing() -> None:
    assert order({}, backwards=False) == order({}, backwards=True)


def test_as_feedstock_was_it_decides_the_harvest() -> None:
    there, back = (harvest(order({"faithful": True}, backwards=backwards)) for backwards in (False, True))
    assert there > 0.8
    assert back < 0.3


def test_the_section_that_pays_is_found_and_stayed_with() -> None:
    assert harvest(order({}, backwards=False)) > 0.5


def test_no_link_is_thrown_away() -> None:
    everything = web()
    assert set(order({}, backwards=False, pages=1_000)) == set(everything)
    with opened({"kind": "groups", "faithful": True}) as guide:
        guide.seed("default", [HOME])
        tell(guide, fetched(HOME, *everything[HOME], relevance=0.0))
        scores = [one["score"] for one in ask(guide, max_urls=10)["assigned_urls"]]
    assert scores[0] >= 0.0
    assert scores.count(-1.0) == 7


def test_the_reward_goes_to_the_group_of_the_page_that_was_fetched() -> None:
    with opened({"kind": "groups", "epsilon": 0.0, "min_epsilon": 0.0}) as guide:
        guide.seed("default", [A])
        asked(guide)
        tell(guide, fetched(A, A + "x/1", A + "x/2", A + "y/1", A + "y/2", relevance=0.5))
        tell(guide, fetched(A + "y/1", relevance=1.0), fetched(A + "x/1", relevance=0.0))
        assert asked(guide, max_urls=2) == [A + "y/2", A + "x/2"]


def test_late_feedback_takes_the_place_of_what_was_said() -> None:
    with opened({"kind": "groups", "epsilon": 0.0, "min_epsilon": 0.0}) as guide:
        guide.seed("default", [A])
        tell(guide, fetched(A, A + "x/1", A + "x/2", A + "y/1", A + "y/2", relevance=0.5))
        tell(guide, fetched(A + "y/1", relevance=0.0), fetched(A + "x/1", relevance=0.4))
        tell(guide, {"url": A + "y/1", "reward": 1.0})
        assert asked(guide, max_urls=2) == [A + "y/2", A + "x/2"]


def test_what_is_given_back_is_given_again() -> None:
    with opened({"kind": "groups"}) as guide:
        guide.seed("default", [A])
        assert asked(guide) == [A]
        tell(guide, {"url": A, "error": "released"})
        assert asked(guide) == [A]


def test_statistics_are_those_of_feedstock() -> None:
    for strategy in ({}, {"faithful": True}):
        with opened({"kind": "groups", **strategy}) as guide:
            assert learned(guide)["epsilon"] == 0.15
            guide.seed("default", [HOME])
            crawled(guide, web(), 20)
            found = learned(guide)
        assert found.keys() == {"q_table_size", "epsilon", "total_updates"}
        assert found["epsilon"] == pytest.approx(0.15 * 0.995**20, rel=0.05)
        assert found["total_updates"] >= 10
        assert found["q_table_size"] > 1


def test_q_is_updated_as_feedstock_documents() -> None:
    """Q(s, a) ← Q(s, a) + α · (r + γ · max Q(s′, a′) − Q(s, a)), with numbers worked out by hand."""
    assert updated(0.0, 1.0, 0.0, rate=0.2, discount=0.9) == pytest.approx(0.2)  # 0 + 0.2 · (1 + 0 − 0)
    assert updated(0.2, 0.5, 0.4, rate=0.2, discount=0.9) == pytest.approx(0.332)  # 0.2 + 0.2 · (0.5 + 0.36 − 0.2)
    assert updated(0.5, 0.0, 0.0, rate=0.2, discount=0.9) == pytest.approx(0.4)  # 0.5 + 0.2 · (0 + 0 − 0.5)


def test_a_crawl_as_feedstock_would_have_the_q_values_worked_out_by_hand() -> None:
    """One group per page; the reward of a page goes to the group that was chosen last."""
    with opened({"kind": "groups", "faithful": True, "epsilon": 0.0, "min_epsilon": 0.0}) as guide:
        guide.seed("default", [A])
        tell(guide, fetched(A, A + "x/1", relevance=0.0))  # chooses same:x in the first state
        tell(guide, fetched(A + "x/1", A + "x/2", relevance=1.0))  # rewards that choice, and chooses again
        tell(guide, fetched(A + "x/2", relevance=0.5))
        local: Any = guide._guide._guide
        (running,) = local.crawls.known.values()
        qualities = running.strategy.predictor._qualities
        found = qualities.records["q"][: qualities.sheet.used].tolist()
    # first: 0 + 0.2 · (1.0 + 0.9 · 0 − 0) = 0.2; second, with nothing stored yet for the state it leads to: 0.2 · 0.5
    assert found == pytest.approx([0.2, 0.1])


def test_epsilon_does_not_fall_below_its_floor() -> None:
    with opened({"kind": "groups", "epsilon_decay": 0.5}) as guide:
        guide.seed("default", [HOME])
        crawled(guide, web(), 20)
        assert learned(guide)["epsilon"] == 0.05


def test_with_epsilon_one_every_group_is_tried() -> None:
    curious = order({"epsilon": 1.0, "epsilon_decay": 1.0}, backwards=False, pages=60)
    sections = [{url.split("/")[3] for url in found} for found in (curious, order({}, backwards=False))]
    assert len(sections[0]) > len(sections[1]) or len(sections[0]) == 9


def test_unknown_options_are_refused_by_name() -> None:
    with (
        pytest.raises(MalformedRequest, match=r"strategy\.epsilom: unknown option"),
        opened({"kind": "groups"}) as guide,
    ):
        guide.define("default", {"strategy": {"kind": "groups", "epsilom": 0.1}})


def test_the_smallest_groups_are_merged_with_their_like() -> None:
    names = ["same:a", "same:a", "same:b", "cross:c", "cross:d", "cross:d"]
    assert merged(names, 4) == names
    assert merged(names, 3) == ["same:a", "same:a", "same:a", "cross:c", "cross:d", "cross:d"]
    assert merged(names, 2) == ["same:a", "same:a", "same:a", "cross:d", "cross:d", "cross:d"]
    assert len(set(merged(names, 1))) == 1


def slowly_merged(sizes: dict[str, int], most: int) -> dict[str, str]:
    """The same by looking at all groups again and again."""
    groups: list[Any] = [[size, place, name, name[:2]] for place, (name, size) in enumerate(sizes.items())]
    into = {name: name for name in sizes}
    while len(groups) > most:
        small, *others = sorted(groups)
        larger = next((group for group in others if group[3] == small[3]), others[0])
        larger[0] += small[0]
        into = {name: larger[2] if group == small[2] else group for name, group in into.items()}
        groups = others
    return into


@given(st.dictionaries(st.from_regex("[ab]/[a-f]|[cd]", fullmatch=True), st.integers(1, 4), min_size=1), st.integers(1))
def test_groups_are_merged_in_the_order_of_their_sizes(sizes: dict[str, int], most: int) -> None:
    assert merges(sizes, most) == slowly_merged(sizes, most)


@pytest.mark.parametrize("name", ["h{0}.example/", "same:{0}", "h{1}/{0}"])
def test_thousands_of_groups_are_merged_soon(name: str) -> None:
    """A page with links to ten thousand hosts took seconds, in which nobody else was served."""
    began = time.thread_time()
    assert len(set(merges({name.format(number, number % 500): 1 for number in range(10_000)}, 10).values())) == 10
    assert time.thread_time() - began < 0.5


def test_merging_page_by_page_does_not_look_at_the_order() -> None:
    names, pages = ["same:a", "same:b", "same:c", "same:x"], np.array([0, 0, 0, 1])
    there, back = merged_by_page(names, pages, 2), merged_by_page([*names[:3][::-1], "same:x"], pages, 2)
    assert there == ["same:b", "same:b", "same:c", "same:x"]
    assert back[:3] == there[:3][::-1]


def test_a_state_has_three_bins_for_each_value() -> None:
    assert state_of([0.0] * 6) == 0
    assert state_of([0.33, 0.0]) == 3
    assert state_of([1.0] * 6) == 3**6 - 1
