"""A reward that comes later still counts for the page and its links."""

from __future__ import annotations

from crawlguide import Guide
from tests.guide.common import UNPACED, A, stats
from tests.support import asked, fetched, tell


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
