"""What `p` means in a crawl where the guide judges pages and the crawler labels some."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.strategies.alone import A, learner
from tests.strategies.lessons import told
from tests.support import batch, fetched

LINKS = [f"{A}{number}" for number in range(400)]
WAITING = LINKS[-20:]


def crawled(labels: int, truth: float) -> Any:
    """Every page is judged relevant, and one of so many, 0: none, is labelled otherwise or likewise."""
    found = learner("pottery")
    found.learn(told(fetched(A, *LINKS, relevance=0.9)))
    for number, url in enumerate(LINKS[:-20]):
        labelled = labels > 0 and number % labels == 0
        lesson = told(fetched(url, relevance=truth if labelled else 0.9))
        lesson.fetches.labelled[:] = labelled
        found.learn(lesson)
    return found


def chance(found: Any) -> float:
    return float(found.predict(batch(WAITING)).mean())


def order(found: Any) -> list[int]:
    rows = batch(WAITING)
    return [int(row) for row in np.argsort(-(found.predict(rows) + found.exploration_bonus(rows)), kind="stable")]


def test_without_labels_it_is_the_chance_to_be_judged_relevant() -> None:
    assert 0.8 < chance(crawled(0, 0.0)) < 1.0


def test_a_few_labels_tell_how_far_judgements_are_to_be_trusted() -> None:
    assert chance(crawled(20, 0.0)) < 0.35
    assert chance(crawled(20, 1.0)) > 0.8


def test_what_is_told_does_not_change_the_order() -> None:
    found = crawled(20, 0.0)
    before = order(found)
    found.memory.trust.rows["judged"], found.memory.generation = 0, found.memory.generation + 1
    assert chance(found) > 0.5  # nobody but the crawler said anything: what it says is what counts
    assert order(found) == before


def test_where_the_crawler_labels_all_nothing_is_mistrusted() -> None:
    found = crawled(1, 0.9)
    assert found.memory.trust.rows["judged"][0] == 0
