"""Is one policy better than another? Both are run on the same webs, tasks and repeats, and only differences count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.lab.policy_names import DEFAULT
from crawlguide.lab.summary import mean

if TYPE_CHECKING:
    from crawlguide.core.tables import F64
    from crawlguide.lab.summary import Summary, Task

RESAMPLES = 10_000
SEED = 0
CONFIDENCE = 0.95
TIE = 0.005  # tasks whose means differ by less are even


@dataclass(frozen=True)
class Comparison:
    """The first policy against the second: above 0 the first found more."""

    policy: str
    other: str
    figure: str
    difference: float
    low: float  # NaN, as `high`, where one pair alone says nothing about chance
    high: float
    wins: int
    ties: int
    losses: int
    worst: Task | None
    worst_difference: float
    pairs: int

    @property
    def settled(self) -> bool:
        """Whether the interval leaves no doubt about the sign."""
        return self.low > 0 or self.high < 0


def compare(summary: Summary, policy: str, other: str, figure: str | None = None) -> Comparison:
    """Paired over (web, task, repeat); of each task the mean over its repeats, of these the mean."""
    figure = figure or summary.deciding
    differences = summary.of(policy, figure) - summary.of(other, figure)
    known = np.flatnonzero(~np.isnan(differences).all(axis=1))
    differences, tasks = differences[known], [summary.tasks[place] for place in known]
    by_task = mean(differences, axis=1)
    low, high = interval(differences, np.random.default_rng(SEED))
    return Comparison(
        policy=policy,
        other=other,
        figure=figure,
        difference=float(mean(by_task)),
        low=low,
        high=high,
        wins=int((by_task >= TIE).sum()),
        ties=int((np.abs(by_task) < TIE).sum()),
        losses=int((by_task <= -TIE).sum()),
        worst=tasks[int(by_task.argmin())] if tasks else None,
        worst_difference=float(by_task.min()) if tasks else np.nan,
        pairs=int((~np.isnan(differences)).sum()),
    )


def subject(summary: Summary) -> str:
    """Who is compared with all others: our default, decided before any run; without it the best."""
    return DEFAULT if DEFAULT in summary.policies else summary.policies[0]


def against(summary: Summary, policy: str, figure: str | None = None) -> list[Comparison]:
    """A policy against each other one that is no reference, the strongest first."""
    return [compare(summary, policy, other, figure) for other in summary.policies if other != policy]


def interval(differences: F64, rng: np.random.Generator) -> tuple[float, float]:
    """The hierarchical bootstrap: tasks are drawn with replacement, then the repeats within each drawn task.

    differences[task, repeat] may have gaps. Repeats of one task resemble each other, so drawing all pairs alike
    would make the interval too narrow.
    """
    if (~np.isnan(differences)).sum() < 2:
        return np.nan, np.nan
    tasks, repeats = differences.shape
    packed = np.take_along_axis(differences, np.argsort(np.isnan(differences), axis=1, kind="stable"), axis=1)
    count = (~np.isnan(differences)).sum(axis=1)
    sampled = rng.integers(tasks, size=(RESAMPLES, tasks))
    of_task = count[sampled][:, :, None]
    places = (rng.random((RESAMPLES, tasks, repeats)) * of_task).astype(np.int64)
    used = np.arange(repeats) < of_task  # a task with fewer repeats draws fewer
    values = np.where(used, packed[sampled[:, :, None], places], 0.0)
    means = (values.sum(axis=2) / count[sampled]).mean(axis=1)
    outside = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, [outside, 1 - outside])
    return float(low), float(high)
