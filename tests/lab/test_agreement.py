"""The lab against a second simulator: where chance plays no part, fetch by fetch; else within what chance explains."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from crawlguide.lab import synthetic
from crawlguide.lab import web as webs
from crawlguide.lab.run import Settings, run
from tests.lab import simulator

if TYPE_CHECKING:
    from crawlguide.lab.pages import Task, Web
    from tests.lab.simulator import Drawn

WIKISPEEDIA = Path(__file__).resolve().parents[3] / "shared" / "data" / "webs" / "wikispeedia"
MADE = "synthetic"
TASKS, BUDGET, REPEATS, APART = 3, 200, 3, 0.02
WEBS = [
    MADE,
    pytest.param(
        "wikispeedia",
        marks=pytest.mark.skipif(not WIKISPEEDIA.is_dir(), reason="the recorded web is not beside the checkout"),
    ),
]


@cache
def opened(name: str) -> tuple[Web, tuple[tuple[Task, Drawn], ...]]:
    """With dead links and redirects, but without what has no end, may be mended, or is not told to be reachable."""
    calm = {"traps": 0, "failing": 0, "mirrors": 0, "duplicates": 0}
    its = synthetic.make(6, pages=1_500, hosts=12, topics=6, **calm) if name == MADE else webs.open(WIKISPEEDIA)
    return its, tuple((task, simulator.drawn(its, task, "far")) for task in its.tasks()[:TASKS])


def in_the_lab(web: Web, task: Task, policy: str, repeat: int) -> list[int]:
    return run(web, task, policy, repeat, Settings(budget=BUDGET, batch=1, seeds_from="far")).relevant


@pytest.mark.parametrize("name", WEBS)
def test_what_leaves_nothing_to_chance_is_the_same_fetch_by_fetch(name: str) -> None:
    web, tasks = opened(name)
    for task, graph in tasks[:2]:
        expected = simulator.simulated(graph, task, "far", "breadth-first", BUDGET, 0)
        assert in_the_lab(web, task, "breadth-first", 0) == expected


@pytest.mark.parametrize("policy", [rule for rule in simulator.RULES if rule != "breadth-first"])
@pytest.mark.parametrize("name", WEBS)
def test_harvests_agree_within_two_points_and_what_chance_explains(name: str, policy: str) -> None:
    web, tasks = opened(name)
    differences, scatter = [], []
    for task, graph in tasks:
        ours = [np.mean(in_the_lab(web, task, policy, repeat)) for repeat in range(REPEATS)]
        theirs = [np.mean(simulator.simulated(graph, task, "far", policy, BUDGET, seed)) for seed in range(4 * REPEATS)]
        differences.append(np.mean(ours) - np.mean(theirs))
        scatter.append(np.var(theirs) * (1 / len(ours) + 1 / len(theirs)))
    error = float(np.sqrt(np.sum(scatter))) / len(tasks)
    assert abs(np.mean(differences)) < APART + 2 * error
    assert error < 2 * APART
