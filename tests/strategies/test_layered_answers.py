"""How likely a link answers at all: learned by form, age and words, and a factor of its own."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

import pytest

from crawlguide.strategies.layered.records import COLUMNS
from tests.strategies.alone import A, column, learner, linked
from tests.strategies.lessons import seeds, told
from tests.support import batch, fetched

if TYPE_CHECKING:
    from crawlguide.strategies.layered.learner import Layered


def answers(found: Layered, url: str) -> float:
    return exp(column(found, url, "answers"))


def after(dead: list[tuple[str, str]], alive: list[tuple[str, str]], left: list[tuple[str, str]]) -> Layered:
    """A learner for which some links of a page were dead and some were not, all on one host that answers."""
    found = learner()
    found.learn(seeds(A))
    links = [linked(*one) for one in (*dead, *alive, *left)]
    found.learn(told({"url": A, "status": 200, "relevance": 0.0, "outlinks": links}))
    for (gone, _), (here, _) in zip(dead, alive, strict=True):
        found.learn(told({"url": gone, "status": 404}, fetched(here, relevance=0.0)))
    return found


def test_dead_links_are_told_by_their_anchors() -> None:
    dead = [(f"{A}d{number}x/", "story archived") for number in range(12)]
    alive = [(f"{A}a{number}x/", "story today") for number in range(12)]
    left = [(f"{A}l1x/", "story archived"), (f"{A}l2x/", "story today")]
    found = after(dead, alive, left)
    assert answers(found, left[0][0]) < 0.35
    assert answers(found, left[1][0]) > 0.65


def test_dead_links_are_told_by_their_age_also_in_years_that_nobody_met() -> None:
    dead = [(f"{A}{2004 + number % 6}/d{number}x/", "") for number in range(24)]
    alive = [(f"{A}{2020 + number % 6}/a{number}x/", "") for number in range(24)]
    left = [(f"{A}2002/l1x/", ""), (f"{A}2026/l2x/", "")]
    found = after(dead, alive, left)
    assert answers(found, left[0][0]) < 0.35
    assert answers(found, left[1][0]) > 0.65


def test_a_dead_link_says_nothing_of_what_it_was_about() -> None:
    """What it was about is learned from pages; that it is dead is learned, too, and lowers p all the same."""
    found, again = learner(), learner()
    for one in (found, again):
        one.learn(seeds(A, *(f"{A}x{number}/" for number in range(6))))
        one.learn(told(fetched(f"{A}x0/", relevance=1.0), fetched(f"{A}x1/", relevance=0.0)))
    before = found.memory.weights.rows["weight"][:COLUMNS].copy()
    found.learn(told({"url": f"{A}x2/", "status": 404}, {"url": f"{A}x3/", "status": 404}))
    assert (found.memory.weights.rows["weight"][:COLUMNS] == before).all()
    assert found.predict(batch([f"{A}x4/"]))[0] < again.predict(batch([f"{A}x4/"]))[0]


def test_p_is_the_product_of_both_chances() -> None:
    found = learner()
    found.learn(seeds(A, f"{A}y/"))
    sure = found.predict(batch([f"{A}y/"]))[0] / answers(found, f"{A}y/")
    found.memory.answer_weights.rows["weight"][0] -= 3.0
    found.memory.generation += 1
    assert found.predict(batch([f"{A}y/"]))[0] == pytest.approx(sure * answers(found, f"{A}y/"))
    assert answers(found, f"{A}y/") < 0.2


def test_explanations_say_that_a_link_may_not_answer() -> None:
    dead = [(f"{A}d{number}x/", "story archived") for number in range(12)]
    alive = [(f"{A}a{number}x/", "story today") for number in range(12)]
    found = after(dead, alive, [(f"{A}l1x/", "story archived")])
    assert "it may not answer" in found.explain(batch([f"{A}l1x/"]))
