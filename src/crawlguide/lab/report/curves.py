"""Harvest curves: their mean over all tasks as one large drawing, and a small one for every task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.gateway.dashboard.formatting import number
from crawlguide.lab import metrics
from crawlguide.lab.report.charts import Frame, Look, Tick, apart, shortened, ticks
from crawlguide.lab.report.formatting import decimal, task_name
from crawlguide.lab.study import mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64
    from crawlguide.lab.study import Study

POINTS = 100
FROM = 0.01  # of the budget: a share of three requests is not yet a rate
SMALL_LABELS = 4


class Line(NamedTuple):
    look: Look
    path: str


class Label(NamedTuple):
    """A name beside the end of its line, with a thin line to it where it had to move."""

    look: Look
    y: float
    end: float
    value: str


@dataclass(frozen=True)
class Chart:
    title: str
    frame: Frame
    width: float
    height: float
    lines: list[Line]
    labels: list[Label]
    x_ticks: list[Tick]
    y_ticks: list[Tick]


def points(budget: int) -> F64:
    """Where curves are drawn: requests from a hundredth of the budget to its end."""
    return np.unique(np.rint(np.linspace(max(1.0, FROM * budget), budget, POINTS)))


def sampled(study: Study, policy: str, at: F64) -> F64:
    """harvest[task, point], the mean over repeats."""
    curves = np.full((len(study.tasks), len(study.repeats), len(at)), np.nan)
    for run in study.runs_of(policy):
        place = study.tasks.index((run.web, run.task)), study.repeats.index(run.repeat)
        curves[place] = metrics.curve(metrics.Trace(run))[at.astype(np.int64) - 1]
    return mean(curves, axis=1)


def drawn(study: Study, looks: Sequence[Look]) -> tuple[Chart, list[Chart]]:
    """The mean, and each task."""
    at = points(study.budget)
    curves = {look.policy: sampled(study, look.policy, at) for look in looks}
    together = {policy: mean(found, axis=0) for policy, found in curves.items()}
    small = [
        _small(study, task_name(study, task), looks, at, {policy: found[place] for policy, found in curves.items()})
        for place, task in enumerate(study.tasks)
    ]
    return _large(study, looks, at, together), small


def _large(study: Study, looks: Sequence[Look], at: F64, curves: dict[str, F64]) -> Chart:
    frame = Frame(40, 30, 650, 400, (0, study.budget), (0, _top(curves)))
    labels = _labels(frame, looks, curves, gap=16)
    x_ticks = [Tick(frame.x(value), number(value)) for value in ticks(0, study.budget, 5) if value <= study.budget]
    y_ticks = _y_ticks(frame, 5)
    lines = _lines(frame, looks, at, curves)
    return Chart("mean over all tasks", frame, 960, 474, lines, labels, x_ticks, y_ticks)


def _small(study: Study, title: str, looks: Sequence[Look], at: F64, curves: dict[str, F64]) -> Chart:
    frame = Frame(32, 26, 150, 118, (0, study.budget), (0, _top(curves)))
    best = sorted(looks, key=lambda look: -_end(curves[look.policy]))
    policies = [look for look in best if look.kind != "reference"][: SMALL_LABELS - 1]
    labelled = policies + [look for look in best if look.kind == "reference"][:1]
    labels = _labels(frame, labelled, curves, gap=12)
    x_ticks = [Tick(frame.x(value), number(value)) for value in (0, study.budget)]
    y_ticks = _y_ticks(frame, 2)
    return Chart(shortened(title, 34), frame, 304, 166, _lines(frame, looks, at, curves), labels, x_ticks, y_ticks)


def _y_ticks(frame: Frame, about: int) -> list[Tick]:
    """Round values inside the frame; few of them may be so far apart that the next lies outside."""
    low, high = frame.y_range
    return [Tick(frame.y(value), f"{value:g}") for value in ticks(low, high, about) if value <= high]


def _top(curves: dict[str, F64]) -> float:
    highest = max((float(np.nanmax(curve)) for curve in curves.values() if not np.isnan(curve).all()), default=0.0)
    return min(1.0, ticks(0, max(highest, 0.01))[-1])


def _end(curve: F64) -> float:
    return -1.0 if np.isnan(curve[-1]) else float(curve[-1])


def _lines(frame: Frame, looks: Sequence[Look], at: F64, curves: dict[str, F64]) -> list[Line]:
    """The compared policy comes last and lies on top."""
    return [Line(look, frame.path(at, curves[look.policy])) for look in reversed(looks)]


def _labels(frame: Frame, looks: Sequence[Look], curves: dict[str, F64], gap: float) -> list[Label]:
    known = [look for look in looks if not np.isnan(curves[look.policy][-1])]
    ends = [frame.y(float(curves[look.policy][-1])) for look in known]
    places = apart(ends, gap, frame.top, frame.bottom)
    return [
        Label(look, place, end, decimal(float(curves[look.policy][-1])))
        for look, place, end in zip(known, places, ends, strict=True)
    ]
