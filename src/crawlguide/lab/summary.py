"""Results as a cube: every figure by policy, task and repeat, with NaN where a run is missing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.errors import DataError
from crawlguide.lab import metrics

if TYPE_CHECKING:
    from crawlguide.core.tables import F64
    from crawlguide.lab.results import Results, Run

Task = tuple[str, str]  # web and name
SATURATED = 0.95  # of what is reachable: a policy that finds so much is ahead of others only on its way there


@dataclass(frozen=True)
class Summary:
    """Policies are the best first, by the mean of the deciding figure; references come after them."""

    results: Results

    def __post_init__(self) -> None:
        budgets = sorted({run.budget for run in self.runs})
        if len(budgets) != 1:
            raise DataError(f"runs: expected runs of one budget, got {budgets or 'no runs'}")
        seen: set[tuple[str, str, int, str]] = set()
        for run in self.runs:
            if (*run.pair, run.policy) in seen:
                raise DataError(f"runs: expected each run once, got twice: {(*run.pair, run.policy)}")
            seen.add((*run.pair, run.policy))

    @property
    def runs(self) -> list[Run]:
        return self.results.runs

    @property
    def budget(self) -> int:
        return self.runs[0].budget

    @property
    def checkpoints(self) -> list[int]:
        return metrics.checkpoints(self.budget)

    @property
    def last(self) -> str:
        """The harvest at the end of the budget."""
        return f"harvest@{self.budget}"

    @cached_property
    def saturated(self) -> bool:
        """Whether some policy has found nearly everything there is: at the end of the budget all look alike then."""
        names = {run.policy for run in self.runs if not run.reference}
        return any(self.mean(name, "exhausted") >= SATURATED for name in names)

    @property
    def deciding(self) -> str:
        """The figure by which policies are ranked: harvest at the end; of a saturated run, over the whole crawl."""
        return "auc" if self.saturated else self.last

    @cached_property
    def tasks(self) -> list[Task]:
        return sorted({(run.web, run.task) for run in self.runs})

    @cached_property
    def repeats(self) -> list[int]:
        return sorted({run.repeat for run in self.runs})

    @cached_property
    def everyone(self) -> list[str]:
        """All policies as the cube has them, by name."""
        return sorted({run.policy for run in self.runs})

    @cached_property
    def _places(self) -> tuple[list[int], list[int], list[int]]:
        policy, task, repeat = (
            {name: place for place, name in enumerate(names)} for names in (self.everyone, self.tasks, self.repeats)
        )
        places = [(policy[run.policy], task[run.web, run.task], repeat[run.repeat]) for run in self.runs]
        return tuple(map(list, zip(*places, strict=True)))  # type: ignore[return-value]

    @cached_property
    def columns(self) -> dict[str, F64]:
        return metrics.measured(self.runs)

    def cube(self, figure: str) -> F64:
        """figure[policy, task, repeat], policies as in `everyone`."""
        cube = np.full((len(self.everyone), len(self.tasks), len(self.repeats)), np.nan)
        cube[self._places] = self.columns[figure]
        return cube

    def of(self, policy: str, figure: str) -> F64:
        """figure[task, repeat] of one policy."""
        values: F64 = self.cube(figure)[self.everyone.index(policy)]
        return values

    def runs_of(self, policy: str) -> list[Run]:
        return [run for run in self.runs if run.policy == policy]

    def by_task(self, policy: str, figure: str) -> F64:
        """The mean over the repeats of each task."""
        return mean(self.of(policy, figure), axis=1)

    def mean(self, policy: str, figure: str) -> float:
        """The mean over tasks of the mean over repeats: every task counts the same."""
        return float(mean(self.by_task(policy, figure)))

    def middle(self, policy: str, figure: str) -> float:
        """The median over runs, for figures that may be infinite."""
        values = self.of(policy, figure)
        values = np.sort(values[~np.isnan(values)])
        return float((values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2) if len(values) else np.nan

    def over(self, policy: str, reference: str, figure: str) -> float:
        """The mean divided by the reference's mean, over the tasks that both have."""
        mine, theirs = self.by_task(policy, figure), self.by_task(reference, figure)
        both = ~np.isnan(mine + theirs)
        return float(mine[both].sum() / theirs[both].sum()) if theirs[both].sum() else np.nan

    @cached_property
    def references(self) -> list[str]:
        """Oracles and ceilings, the highest first."""
        names = {run.policy for run in self.runs if run.reference}
        return sorted(names, key=lambda name: (-self.mean(name, self.deciding), name))

    @cached_property
    def policies(self) -> list[str]:
        """All that may be compared, the best first."""
        names = {run.policy for run in self.runs} - set(self.references)
        return sorted(names, key=lambda name: (-self.mean(name, self.deciding), name))

    @cached_property
    def missing(self) -> dict[str, int]:
        """How many tasks each policy has no run of, where there are such."""
        counts = {name: int(np.isnan(self.by_task(name, self.last)).sum()) for name in self.everyone}
        return {name: count for name, count in counts.items() if count}


def mean(values: F64, axis: int | None = None) -> F64:
    """The mean of what is known; NaN where nothing is."""
    known = ~np.isnan(values)
    count = known.sum(axis)
    return np.where(count > 0, np.where(known, values, 0.0).sum(axis) / np.maximum(count, 1), np.nan)
