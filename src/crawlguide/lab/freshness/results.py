"""What replays leave behind, as one JSON document, and the figures that reports make of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from crawlguide.core.errors import DataError
from crawlguide.gateway.transfers import written
from crawlguide.lab.compare import SEED, interval
from crawlguide.lab.summary import mean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from crawlguide.core.tables import F64

SCHEMA = 1
OURS = "crawlguide"


class Run(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One policy on one web with one budget, once. The columns have one place for each day."""

    web: str
    share: float  # of its pages that may be visited in a day
    policy: str
    repeat: int
    reference: bool  # it was shown what no crawler can know
    pages: int
    days: int
    weight: list[float]  # importance of the pages that counted
    freshness: list[float]
    age: list[float]  # of copies, in days
    requests: list[int]
    for_nothing: list[int]  # requests that saw no change
    expected: list[float] | None  # freshness as it is expected from the visits, where the true rates are known
    optimum: list[float] | None  # the best that is possible with known rates
    seconds: float

    @property
    def task(self) -> tuple[str, float]:
        return self.web, self.share


class Results(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    schema: int = SCHEMA
    command: list[str]
    versions: dict[str, str]
    runs: list[Run]


def ordered(runs: Sequence[Run]) -> list[Run]:
    """A fixed order, whoever finished first: ours before the others."""
    return sorted(runs, key=lambda run: (run.web, run.share, run.reference, run.policy != OURS, run.policy, run.repeat))


def write_json(results: Results, path: Path) -> None:
    """The file gets its name when it is whole."""
    with written(path) as file:
        file.write(msgspec.json.encode(results) + b"\n")


def read_json(path: Path) -> Results:
    try:
        results = msgspec.json.decode(path.read_bytes(), type=Results)
    except OSError as problem:
        raise DataError(f"{path}: cannot be read: {problem.strerror}") from None
    except msgspec.DecodeError as problem:
        raise DataError(f"{path}: expected results of lab freshness: {problem}") from None
    if results.schema != SCHEMA:
        raise DataError(f"{path}: schema: expected {SCHEMA}, got {results.schema}")
    return results


# Figures of one run.


def freshness(run: Run, since: int = 0, until: int | None = None) -> float:
    """The share of time in which copies were current, weighted by importance, over some of the days."""
    return _mean(run.freshness, run, slice(since, until))


def age(run: Run) -> float:
    return _mean(run.age, run, slice(None))


def for_nothing(run: Run) -> float:
    """The share of requests that saw no change."""
    return sum(run.for_nothing) / max(sum(run.requests), 1)


def of_optimum(run: Run, since: int = 0, until: int | None = None) -> float:
    """Expected freshness divided by the best possible; NaN where that is not known."""
    if run.expected is None or run.optimum is None:
        return np.nan
    days = slice(since, until)
    return float(np.sum(run.expected[days]) / np.sum(run.optimum[days]))


def _mean(column: list[float], run: Run, days: slice) -> float:
    weight = run.weight[days]
    return float(np.average(column[days], weights=weight)) if sum(weight) else np.nan


# Figures of many.


@dataclass(frozen=True)
class Difference:
    """Ours against another policy, in freshness; above 0 ours is fresher."""

    other: str
    mean: float
    low: float
    high: float
    worst: tuple[str, float]
    worst_difference: float


class Summary:
    """Runs by web, budget, policy and repeat."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.tasks = list(dict.fromkeys(run.task for run in results.runs))
        self.repeats = sorted({run.repeat for run in results.runs})
        self.references = _names(results.runs, reference=True)
        rivals = _names(results.runs, reference=False)
        self.policies = sorted(rivals, key=lambda name: (name != OURS, -self.mean(name)))

    def runs(self, policy: str, task: tuple[str, float]) -> list[Run]:
        return [run for run in self.results.runs if run.policy == policy and run.task == task]

    def of(self, policy: str, figure: Callable[[Run], float] = freshness) -> F64:
        """figure[task, repeat], NaN where there was no run."""
        values = np.full((len(self.tasks), len(self.repeats)), np.nan)
        for run in self.results.runs:
            if run.policy == policy:
                values[self.tasks.index(run.task), self.repeats.index(run.repeat)] = figure(run)
        return values

    def by_task(self, policy: str, figure: Callable[[Run], float] = freshness) -> F64:
        means: F64 = mean(self.of(policy, figure), axis=1)
        return means

    def mean(self, policy: str, figure: Callable[[Run], float] = freshness) -> float:
        return float(mean(self.by_task(policy, figure)))

    def differences(self) -> list[Difference]:
        """The first, which is ours if it took part, against each other policy that is no reference."""
        if not self.policies:
            return []
        mine = self.of(self.policies[0])
        return [self._difference(other, mine - self.of(other)) for other in self.policies[1:]]

    def _difference(self, other: str, differences: F64) -> Difference:
        known = np.flatnonzero(~np.isnan(differences).all(axis=1))
        differences = differences[known]
        by_task = mean(differences, axis=1)
        low, high = interval(differences, np.random.default_rng(SEED))
        worst = int(by_task.argmin())
        return Difference(other, float(by_task.mean()), low, high, self.tasks[int(known[worst])], float(by_task[worst]))


def _names(runs: Sequence[Run], *, reference: bool) -> list[str]:
    return list(dict.fromkeys(run.policy for run in runs if run.reference == reference))
