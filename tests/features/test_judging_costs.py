"""What a judge costs: no goal and no page that somebody may write takes long."""

from __future__ import annotations

import time
from math import ceil
from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawlguide.core.definition import Goal
from crawlguide.core.messages import Fetch
from crawlguide.features.relevance import Judge
from crawlguide.features.relevance.words import KEY, SHARE, Matcher, singular
from crawlguide.guide.crawl.active_crawl import relevance_of

MOST_S = 0.5  # the aim is a tenth of it
ALIKE = " ".join(f"aaaa{number:05}" for number in range(9_900))
GOALS = {
    "a topic of words that begin alike": Goal(topic=ALIKE),
    "a reference of words that begin alike": Goal(reference=ALIKE, anti_reference=ALIKE),
    "keywords that begin alike": Goal(keywords=tuple(ALIKE.split()[:1_000])),
    "long keywords": Goal(keywords=tuple(word * 20 for word in ALIKE.split()[:1_000])),
    "many alternatives": Goal(keywords=tuple("|".join(["a"] * 120) for _ in range(1_000))),
    "other alternatives": Goal(keywords=("|".join(f"a a{chr(98 + at)}" for at in range(24)),) * 1_000),
    "long phrases": Goal(keywords=(" ".join(["a"] * 120),) * 1_000),
    "one endless word": Goal(topic="a" * 100_000),
}
PAGES = {
    "words that begin alike": Fetch("https://a.org/", 200, title=ALIKE, text=ALIKE),
    "one endless word": Fetch("https://a.org/", 200, title="a" * 1_000_000, text="a" * 1_000_000),
    "the same word": Fetch("https://a.org/", 200, title="a " * 500_000, text="a-" * 500_000),
    "headings": Fetch("https://a.org/", 200, title="# a\n" * 200_000, text="# a ab ac\n" * 200_000),
}

Kind = Literal["semantic", "feedstock", "forager"]


@pytest.mark.parametrize("judge", ["semantic", "feedstock", "forager"])
@pytest.mark.parametrize("goal", GOALS.values(), ids=GOALS)
def test_no_page_takes_long_to_be_judged_by_any_goal(goal: Goal, judge: Kind) -> None:
    began = time.process_time()
    judges = Judge(Goal(topic=goal.topic, keywords=goal.keywords, reference=goal.reference, judge=judge))
    for name, page in PAGES.items():
        assert 0.0 <= relevance_of(page, judges) <= 1.0
        assert time.process_time() - began < MOST_S, name
        began = time.process_time()


def is_form_of(one: str, other: str) -> bool:
    """The definition: two words begin alike for most of the longer one."""
    one, other = singular(one), singular(other)
    common = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one == other or common >= max(KEY, SHARE * max(len(one), len(other)))


WORDS = st.lists(st.text("abs", min_size=1, max_size=9), min_size=1, max_size=8, unique=True)


@settings(max_examples=300, deadline=None)
@given(WORDS, WORDS)
@example(["statistics"], ["statistical"])
@example(["abab"], ["aba"])
def test_words_are_found_in_all_their_forms(wanted: list[str], text: list[str]) -> None:
    found = sum(any(is_form_of(word, other) for other in text) for word in wanted)
    assert Matcher(tuple(wanted)).share(" ".join(text)) == found / len(wanted)


def test_a_share_that_is_no_whole_number_of_letters_is_rounded_up() -> None:
    assert ceil(SHARE * 20) == 13
    assert Matcher(("a" * 20,)).share("a" * 13 + "b" * 7) == 1.0
    assert Matcher(("a" * 20,)).share("a" * 12 + "b" * 8) == 0.0
