"""The product's classic strategies find what independent programs of the same rules find."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from crawlguide.lab import policy_names, synthetic
from crawlguide.lab.run import Settings, run
from tests.lab import oracles
from tests.lab.oracles import pagerank

if TYPE_CHECKING:
    from crawlguide.lab.pages import Web
    from crawlguide.lab.results import Run

CALM = {"traps": 0.0, "dead": 0.0, "duplicates": 0.0, "redirects": 0.0, "failing": 0.0, "mirrors": 0}
WEB: Web = synthetic.make(5, pages=1_500, hosts=12, topics=5, **CALM)
BUDGET = 300


@cache
def made(policy: str, task: int, repeat: int, batch: int = 10) -> Run:
    return run(WEB, WEB.tasks()[task], policy, repeat, Settings(budget=BUDGET, batch=batch))


def harvest(policy: str) -> float:
    """Over all tasks: into which of them a policy falls that does not look at relevance, chance decides."""
    hits = [sum(made(policy, task, repeat=0).relevant) for task in range(len(WEB.tasks()))]
    return sum(hits) / (len(hits) * BUDGET)


def test_there_is_an_oracle_for_every_classic() -> None:
    assert set(oracles.kinds()) == set(policy_names.CLASSICS)


@pytest.mark.parametrize("kind", policy_names.CLASSICS)
def test_the_strategy_finds_about_as_much_as_its_oracle(kind: str) -> None:
    """They may differ in which of equals goes first."""
    assert abs(harvest(kind) - harvest(oracles.policy(kind))) < 0.05


@pytest.mark.parametrize("kind", ["breadth-first", "depth-first"])
def test_where_chance_plays_no_part_every_fetch_is_the_same(kind: str) -> None:
    assert made(kind, 1, 0, batch=1).host == made(oracles.policy(kind), 1, 0, batch=1).host


@pytest.mark.parametrize("kind", ["best-first", "best-first-mean", "relational"])
def test_whoever_looks_at_relevance_finds_more_than_chance(kind: str) -> None:
    assert harvest(kind) > 1.3 * harvest("random")


def test_pagerank_sums_to_one_and_prefers_what_is_linked() -> None:
    rank = pagerank.ranked(np.array([0, 1, 2]), np.array([3, 3, 0]), 4)
    assert rank.sum() == pytest.approx(1.0)
    assert rank.argmax() == 3
