"""How good an order of fetches was. One function is one figure, and looks like its formula.

Every request counts. A run that ended before its budget found nothing with the rest of it, so that policies which run
dry are not rewarded for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from crawlguide.core.tables import F64
    from crawlguide.lab.results import Run

SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)  # of the budget: where the harvest is read
CALIBRATED = slice(500, 2_000)  # fetches 501 to 2000: the first ones teach the model what its figures mean
BINS = 10


@dataclass(frozen=True)
class Trace:
    """A run with the column that nearly every figure needs."""

    run: Run

    @cached_property
    def relevant(self) -> F64:
        """1 where a request found a target, for each request of the budget."""
        column = np.zeros(self.run.budget)
        column[: len(self.run.relevant)] = self.run.relevant
        return column

    @cached_property
    def found(self) -> F64:
        """Targets found by the first k requests, k = 1 … budget."""
        return np.cumsum(self.relevant)

    @property
    def requests(self) -> F64:
        return np.arange(1.0, self.run.budget + 1)

    @property
    def attainable(self) -> int:
        """What a crawler that makes no mistake finds within the budget."""
        return min(self.run.reachable, self.run.budget)


def checkpoints(budget: int) -> list[int]:
    """2000 -> 100, 200, 500, 1000, 2000."""
    return sorted({max(1, round(share * budget)) for share in SHARES})


def curve(trace: Trace) -> F64:
    """harvest(k) = found(k) / k"""
    return trace.found / trace.requests


def harvest(trace: Trace, k: int) -> float:
    return float(trace.found[k - 1] / k)


def auc(trace: Trace) -> float:
    """1/B · Σ harvest(k): the mean height of the curve, which rewards finding early."""
    return float(curve(trace).mean())


def recall(trace: Trace) -> float:
    """found(B) / targets"""
    return float(trace.found[-1] / trace.run.targets) if trace.run.targets else np.nan


def exhausted(trace: Trace) -> float:
    """found(B) / reachable: 1 where nothing was left to find, so that the end of the run says nothing any more"""
    return float(trace.found[-1] / trace.run.reachable) if trace.run.reachable else np.nan


def requests_to(trace: Trace, share: float) -> float:
    """The smallest k with found(k) ≥ share · targets; infinite where the budget was not enough."""
    if not trace.run.targets:
        return np.nan
    enough = trace.found >= share * trace.run.targets
    return float(1 + np.argmax(enough)) if enough[-1] else np.inf


def relevant_hosts(trace: Trace) -> float:
    """Hosts on which at least one target was found."""
    return float(len({host for host, hit in zip(trace.run.host, trace.run.relevant, strict=True) if hit}))


def ndcg(trace: Trace) -> float:
    """Σ relevant(k) / log₂(k + 1), divided by the same sum with all attainable targets first."""
    gain = 1.0 / np.log2(trace.requests + 1)
    ideal = gain[: trace.attainable].sum()
    return float((gain * trace.relevant).sum() / ideal) if ideal else np.nan


def waste(trace: Trace, letter: str) -> float:
    """The share of requests that met this outcome."""
    return trace.run.outcome.count(letter) / len(trace.run.outcome) if trace.run.outcome else np.nan


class Calibration(NamedTuple):
    """How well predicted probabilities agree with what was found.

    Bins hold equally many fetches; equal probabilities share a bin.
    """

    predicted: F64  # mean p in each bin
    observed: F64  # share of relevant in each bin
    weight: F64  # share of all fetches in each bin
    ece: float  # Σ weight · |predicted - observed|
    brier: float  # mean (p - y)²
    base: float  # the Brier score of always saying the base rate: ȳ · (1 - ȳ)
    fetches: int


def calibration(runs: Iterable[Run]) -> Calibration | None:
    """Of all fetches with a predicted probability, number 501 to 2000 of each run; None where there are none."""
    pairs = [_predicted_and_relevant(run) for run in runs]
    p, y = np.hstack([np.empty((2, 0)), *pairs])
    if not len(p):
        return None
    place = _equal_mass(p)
    weight = np.bincount(place, minlength=BINS) / len(p)
    filled = weight > 0
    predicted, observed = (np.bincount(place, column, BINS)[filled] / (weight[filled] * len(p)) for column in (p, y))
    return Calibration(
        predicted=predicted,
        observed=observed,
        weight=weight[filled],
        ece=float((weight[filled] * np.abs(predicted - observed)).sum()),
        brier=float(((p - y) ** 2).mean()),
        base=float(y.mean() * (1 - y.mean())),
        fetches=len(p),
    )


def _predicted_and_relevant(run: Run) -> F64:
    rows = np.array([run.p[CALIBRATED], run.relevant[CALIBRATED]], np.float64)
    return rows[:, ~np.isnan(rows[0])]


def _equal_mass(p: F64) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The bin of each row by its rank; rows of equal p have the middle of their ranks."""
    _, value, count = np.unique(p, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - count / 2
    return (BINS * middle / len(p)).astype(np.int64)[value]


def _brier_skill(run: Run) -> float:
    """1 - Brier / base: 0 says no more than the base rate, below 0 is worse than saying it."""
    one = calibration([run])
    return 1 - one.brier / one.base if one and one.base else np.nan


def _ece(run: Run) -> float:
    one = calibration([run])
    return one.ece if one else np.nan


FIGURES: dict[str, Callable[[Trace], float]] = {
    "auc": auc,
    "recall": recall,
    "exhausted": exhausted,
    "to_50": lambda trace: requests_to(trace, 0.5),
    "to_90": lambda trace: requests_to(trace, 0.9),
    "hosts": relevant_hosts,
    "ndcg": ndcg,
    "ece": lambda trace: _ece(trace.run),
    "brier_skill": lambda trace: _brier_skill(trace.run),
    "traps": lambda trace: waste(trace, "t"),
    "duplicates": lambda trace: waste(trace, "u"),
    "dead": lambda trace: waste(trace, "d"),
    "errors": lambda trace: waste(trace, "e"),
    "redirects": lambda trace: waste(trace, "r"),
    "cpu_us": lambda trace: trace.run.cpu_us_per_fetch,
}


def measured(runs: Sequence[Run]) -> dict[str, F64]:
    """One column per figure, one place per run: the harvest at five checkpoints, then all others."""
    traces = [Trace(run) for run in runs]
    points = checkpoints(runs[0].budget) if runs else []
    columns = {f"harvest@{k}": [harvest(trace, k) for trace in traces] for k in points}
    columns |= {name: [figure(trace) for trace in traces] for name, figure in FIGURES.items()}
    return {name: np.array(column) for name, column in columns.items()}
