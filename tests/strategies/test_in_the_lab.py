"""The product's strategies beside the lab's own policies of the same name, on a web that is made up."""

from __future__ import annotations

from functools import cache

import pytest

from crawlguide.lab import synthetic
from crawlguide.lab.run import Settings, run

CALM = {"traps": 0.0, "dead": 0.0, "duplicates": 0.0, "redirects": 0.0, "failing": 0.0, "mirrors": 0}
WEB = synthetic.make(5, pages=1_500, hosts=12, topics=5, **CALM)
BUDGET = 300
PAIRS = {
    "groups": "feedstock-repaired",
    "bandit": "arms",
    "ucb": "arms",
    "best-first-mean": "tests.lab.oracles.best_first_mean",
}  # of those that do not look at the topic, chance decides into which they fall


@cache
def harvest(policy: str) -> float:
    runs = [run(WEB, task, policy, repeat, Settings(budget=BUDGET)) for task in WEB.tasks()[1:3] for repeat in (0, 1)]
    assert all(len(made.relevant) == BUDGET for made in runs)
    return sum(sum(made.relevant) for made in runs) / (len(runs) * BUDGET)


@pytest.mark.parametrize("ours", PAIRS)
def test_each_finds_about_as_much_as_the_policy_of_the_lab_or_more(ours: str) -> None:
    assert harvest(ours) > 0.9 * harvest(PAIRS[ours]) - 0.02


@pytest.mark.parametrize("ours", ["groups", "bandit", "ucb", "scorer"])
def test_who_learns_finds_more_than_chance(ours: str) -> None:
    assert harvest(ours) > 1.3 * harvest("random")
