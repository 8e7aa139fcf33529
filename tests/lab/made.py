"""Results from a seeded generator: policies of known skill on webs that never were."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawlguide.lab.results import Results, Run

SKILLS = {
    "layered": 0.75,
    "keyword": 0.5,
    "relational": 0.45,
    "best-first": 0.35,
    "breadth-first": 0.06,
    "random": 0.03,
}
REFERENCES = {"oracle-full": 1.0, "oracle-one-hop": 0.8}
NAMES = ("astronomy", "compilers", "databases", "fonts", "networks", "printing", "statistics", "typesetting")


def run(relevant: list[int], **changes: Any) -> Run:
    """A run with these hits, plain in everything else."""
    fetches = len(relevant)
    plain: dict[str, Any] = {
        "web": "made", "task": "a", "policy": "x", "repeat": 0, "seed": 0, "budget": fetches, "batch": 10,
        "crawlers": 1, "seeds_from": "portal", "feedback": "label", "reference": False, "relevant": relevant,
        "outcome": "p" * fetches, "host": [0] * fetches, "p": [None] * fetches, "targets": max(1, sum(relevant)),
        "reachable": sum(relevant), "seconds": 1.0, "cpu_us_per_fetch": 100.0,
    }  # fmt: skip
    return Run(**(plain | changes))


def results(runs: list[Run], **changes: Any) -> Results:
    plain: dict[str, Any] = {"command": ["crawlguide", "lab", "run"], "versions": {"crawlguide": "0.1.0"}, "runs": runs}
    return Results(**(plain | changes))


def crawled(policy: str, task: str, repeat: int, skill: float, budget: int) -> Run:
    """The better the skill and the more is left, the more often a request hits."""
    hardness = np.random.default_rng([*task.encode()]).random()
    rng = np.random.default_rng([repeat, *task.encode(), *policy.encode()])
    reachable = int(budget * (0.25 + 0.5 * hardness))
    left, relevant, chances = reachable, [], []
    known = skill * (1.0 - 0.5 * hardness) if skill < 1 else 1.0
    for fetch in range(budget):
        warm = 1.0 - np.exp(-(fetch + 1) / 60) if skill < 0.8 else 1.0
        chance = known * warm * min(1.0, 2.2 * left / reachable) if skill < 1 else float(left > 0)
        hit = int(rng.random() < chance)
        left -= hit
        relevant.append(hit)
        chances.append(float(np.clip(chance + rng.normal(0, 0.05), 0, 1)))
    miss = rng.choice(list("ppppppdduter"), budget)
    outcome = "".join("p" if hit else letter for hit, letter in zip(relevant, miss, strict=True))
    return run(
        relevant, task=task, policy=policy, repeat=repeat, seed=repeat, outcome=outcome,
        host=rng.integers(0, 40, budget).tolist(), p=[None] * budget if policy in REFERENCES else chances,
        reference=policy in REFERENCES, targets=reachable + 20, reachable=reachable,
        cpu_us_per_fetch=40.0 + 400 * skill, seconds=1.0,
    )  # fmt: skip


def made(tasks: int = 6, repeats: int = 3, budget: int = 2_000) -> Results:
    everyone = SKILLS | REFERENCES
    runs = [
        crawled(policy, task, repeat, skill, budget)
        for policy, skill in everyone.items()
        for task in NAMES[:tasks]
        for repeat in range(repeats)
    ]
    command = ["crawlguide", "lab", "run", "--web", "made", "--policies", ",".join(everyone), "--budget", str(budget)]
    return results(runs, command=command, versions={"crawlguide": "0.1.0", "numpy": np.__version__, "python": "3.11"})
