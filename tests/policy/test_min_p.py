"""`policy.min_p`: only what is worth its price is given out, and a crawl that has nothing better left says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crawlguide.core.definition import Definition, Policy
from crawlguide.core.errors import MalformedRequest
from crawlguide.policy import min_p
from tests.guide.common import UNPACED, A, pages
from tests.support import ask, asked, batch, fetched, question, state_of, tell

if TYPE_CHECKING:
    from crawlguide import Guide
    from crawlguide.testing import ManualClock

BOUND = min_p.build(Definition(policy=Policy(min_p=0.3)))
FOUND = pages(3)


def bounded(guide: Guide, least: float, **policy: object) -> Guide:
    guide.define("default", {"strategy": {"kind": "best-first"}, "policy": UNPACED | {"min_p": least} | policy})
    return guide


def begun(guide: Guide, relevance: float) -> None:
    """A seed of this relevance was fetched, and its links wait with the same value."""
    guide.seed("default", [A])
    tell(guide, fetched(asked(guide)[0], *FOUND, relevance=relevance))


def test_rows_below_it_are_refused_and_rows_at_it_are_kept() -> None:
    rows = batch(FOUND, value=[0.29, 0.3, 0.9], depth=[1, 1, 1])
    assert BOUND.keep(rows, question()).tolist() == [False, True, True]


def test_seeds_are_kept_whatever_their_chance() -> None:
    assert BOUND.keep(batch([A], value=[0.0], depth=[0]), question()).tolist() == [True]


@pytest.mark.parametrize(
    ("value", "depth", "words"),
    [(0.1, 1, "0.100 is below policy.min_p"), (0.5, 1, "0.500 reaches policy.min_p"), (0.1, 0, "not hold for seeds")],
)
def test_it_says_why_in_words(value: float, depth: int, words: str) -> None:
    assert words in BOUND.why(batch([A], value=[value], depth=[depth]), question())


def test_a_crawl_without_it_does_not_name_it(guide: Guide) -> None:
    assert "min_p_ok" not in ask(guide)["metadata"]["filters_applied"]


def test_what_reaches_it_is_given_out(guide: Guide) -> None:
    begun(bounded(guide, 0.3), 0.9)
    assert set(asked(guide)) == set(FOUND)


def test_what_does_not_reach_it_stays_queued_and_is_counted(guide: Guide) -> None:
    begun(bounded(guide, 0.3), 0.1)
    answer = ask(guide)
    assert (answer["assigned_urls"], answer["metadata"]["dropped"]) == ([], {"min_p": 3})
    assert state_of(guide, FOUND[0]) == "queued"


def test_a_crawl_with_nothing_better_left_is_exhausted_and_says_why(guide: Guide) -> None:
    begun(bounded(guide, 0.3), 0.1)
    about = ask(guide)["metadata"]
    assert about["crawl_state"] == "exhausted"
    assert about["exhausted_why"] == "none of the best 3 URLs that wait reaches policy.min_p, which is 0.3"


def test_a_crawl_that_ends_by_itself_says_nothing_of_it(guide: Guide) -> None:
    bounded(guide, 0.3)
    about = ask(guide)["metadata"]
    assert (about["crawl_state"], "exhausted_why" in about) == ("exhausted", False)


def test_while_something_is_leased_that_could_raise_others_the_crawl_waits(guide: Guide) -> None:
    bounded(guide, 0.3)
    guide.seed("default", [A, "https://b.org/"])
    asked(guide)
    tell(guide, fetched(A, *FOUND, relevance=0.1))
    assert ask(guide)["metadata"]["crawl_state"] == "waiting"


def test_while_a_better_one_has_to_rest_the_crawl_waits_for_it(guide: Guide, clock: ManualClock) -> None:
    bounded(guide, 0.3, default_delay_s=40)
    guide.seed("default", [A, "https://b.org/"])
    asked(guide)
    tell(guide, fetched(A, *FOUND, relevance=0.9), fetched("https://b.org/", "https://c.org/", relevance=0.1))
    answer = ask(guide)
    assert (answer["assigned_urls"], answer["metadata"]["crawl_state"]) == ([], "waiting")
    clock.advance(41.0)
    assert asked(guide)[0] in FOUND


def test_a_url_that_rises_is_given_out(guide: Guide) -> None:
    begun(bounded(guide, 0.3), 0.1)
    assert asked(guide) == []
    tell(guide, fetched("https://b.org/", FOUND[1], relevance=0.9))
    assert asked(guide) == [FOUND[1]]


def test_a_lower_one_lets_the_crawl_go_on(guide: Guide) -> None:
    begun(bounded(guide, 0.3), 0.1)
    assert asked(guide) == []
    guide.patch("default", {"policy": {"min_p": 0.05}})
    assert set(asked(guide)) == set(FOUND)


def test_explain_names_it(guide: Guide) -> None:
    begun(bounded(guide, 0.3), 0.1)
    assert "min_p: its p of 0.100 is below policy.min_p, which is 0.3" in guide.explain("default", FOUND[0])["needs"]


def test_one_that_is_no_share_is_refused_by_name(guide: Guide) -> None:
    with pytest.raises(MalformedRequest) as refusal:
        bounded(guide, 1.5)
    assert refusal.value.field == "policy.min_p"
