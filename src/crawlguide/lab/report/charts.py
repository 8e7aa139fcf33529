"""The figures of the HTML page, as places in a drawing: harvest curves, forest plot, heat map, calibration plots.

Templates turn them into SVG. Every figure shows a policy in the same colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.gateway.dashboard.axes import Frame, Tick, ticks
from crawlguide.gateway.dashboard.formatting import number, visible
from crawlguide.lab import metrics
from crawlguide.lab.compare import subject
from crawlguide.lab.report.formatting import decimal, shortened, signed, task_name
from crawlguide.lab.summary import mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64
    from crawlguide.lab.compare import Comparison
    from crawlguide.lab.metrics import Calibration
    from crawlguide.lab.summary import Summary

COLOURS = 6  # of Okabe and Ito's palette, which is safe for colour blindness; the style sheet has them
POINTS = 100  # of a curve
CURVE_FROM = 0.01  # of the budget: the share of hits among three requests is not yet a rate
SMALL_LABELS = 4
FOREST_ROW = 30  # height
HEAT_LEVELS = 10
HEAT_ROOMY = 12  # columns; more stand closer
HEAT_LONGEST = 26  # characters of a task


@dataclass(frozen=True)
class Series:
    """A policy as figures and tables show it. Its class colours it: c0 … c5, `other` beyond these, or `reference`."""

    policy: str
    name: str
    short: str
    css_class: str

    @property
    def is_reference(self) -> bool:
        return self.css_class == "reference"


def all_series(summary: Summary) -> list[Series]:
    """The compared policy first, then the others, the best first, then the references."""
    first = [subject(summary)] if summary.policies else []
    policies = first + [name for name in summary.policies if name not in first]
    classes = [f"c{place}" if place < COLOURS else "other" for place in range(len(policies))]
    classes += ["reference"] * len(summary.references)
    return [
        Series(policy, visible(policy), shortened(visible(policy)), css_class)
        for policy, css_class in zip(policies + summary.references, classes, strict=True)
    ]


class Curve(NamedTuple):
    series: Series
    path: str


class Label(NamedTuple):
    """A name beside the end of its line, with a thin line to it where it had to move."""

    series: Series
    y: float
    end: float
    value: str


@dataclass(frozen=True)
class Chart:
    title: str
    frame: Frame
    width: float
    height: float
    curves: list[Curve]
    labels: list[Label]
    x_ticks: list[Tick]
    y_ticks: list[Tick]


def harvest_curves(summary: Summary, every: Sequence[Series]) -> tuple[Chart, list[Chart]]:
    """The mean, and each task."""
    at = curve_points(summary.budget)
    curves = {series.policy: curves_by_task(summary, series.policy, at) for series in every}
    together = {policy: mean(by_task, axis=0) for policy, by_task in curves.items()}
    small = [
        _small(summary, task_name(summary, task), every, at, {policy: its[place] for policy, its in curves.items()})
        for place, task in enumerate(summary.tasks)
    ]
    return _large(summary, every, at, together), small


def curve_points(budget: int) -> F64:
    """Where curves are drawn: requests from a hundredth of the budget to its end."""
    return np.unique(np.rint(np.linspace(max(1.0, CURVE_FROM * budget), budget, POINTS)))


def curves_by_task(summary: Summary, policy: str, at: F64) -> F64:
    """harvest[task, point], the mean over repeats."""
    rates = np.full((len(summary.tasks), len(summary.repeats), len(at)), np.nan)
    for run in summary.runs_of(policy):
        place = summary.tasks.index((run.web, run.task)), summary.repeats.index(run.repeat)
        rates[place] = metrics.curve(metrics.Trace(run))[at.astype(np.int64) - 1]
    return mean(rates, axis=1)


def _large(summary: Summary, every: Sequence[Series], at: F64, curves: dict[str, F64]) -> Chart:
    frame = Frame(40, 30, 650, 400, (0, summary.budget), (0, _top(curves)))
    labels = _labels(frame, every, curves, gap=16)
    x_ticks = [Tick(frame.x(value), number(value)) for value in ticks(0, summary.budget, 5) if value <= summary.budget]
    y_ticks = _y_ticks(frame, 5)
    return Chart("mean over all tasks", frame, 960, 474, _curves(frame, every, at, curves), labels, x_ticks, y_ticks)


def _small(summary: Summary, title: str, every: Sequence[Series], at: F64, curves: dict[str, F64]) -> Chart:
    frame = Frame(32, 26, 150, 118, (0, summary.budget), (0, _top(curves)))
    best = sorted(every, key=lambda series: -_end(curves[series.policy]))
    policies = [series for series in best if not series.is_reference][: SMALL_LABELS - 1]
    labelled = policies + [series for series in best if series.is_reference][:1]
    labels = _labels(frame, labelled, curves, gap=12)
    x_ticks = [Tick(frame.x(value), number(value)) for value in (0, summary.budget)]
    y_ticks = _y_ticks(frame, 2)
    return Chart(shortened(title, 34), frame, 304, 166, _curves(frame, every, at, curves), labels, x_ticks, y_ticks)


def _y_ticks(frame: Frame, about: int) -> list[Tick]:
    """Round values inside the frame; few of them may be so far apart that the next lies outside."""
    low, high = frame.y_range
    return [Tick(frame.y(value), f"{value:g}") for value in ticks(low, high, about) if value <= high]


def _top(curves: dict[str, F64]) -> float:
    highest = max((float(np.nanmax(curve)) for curve in curves.values() if not np.isnan(curve).all()), default=0.0)
    return min(1.0, ticks(0, max(highest, 0.01))[-1])


def _end(curve: F64) -> float:
    return -1.0 if np.isnan(curve[-1]) else float(curve[-1])


def _curves(frame: Frame, every: Sequence[Series], at: F64, curves: dict[str, F64]) -> list[Curve]:
    """The compared policy comes last and lies on top."""
    return [Curve(series, frame.path(at, curves[series.policy])) for series in reversed(every)]


def _labels(frame: Frame, every: Sequence[Series], curves: dict[str, F64], gap: float) -> list[Label]:
    known = [series for series in every if not np.isnan(curves[series.policy][-1])]
    ends = [frame.y(float(curves[series.policy][-1])) for series in known]
    places = spaced_apart(ends, gap, frame.top, frame.bottom)
    return [
        Label(series, place, end, decimal(float(curves[series.policy][-1])))
        for series, place, end in zip(known, places, ends, strict=True)
    ]


class ForestRow(NamedTuple):
    series: Series
    comparison: Comparison
    y: float
    low: float
    at: float
    high: float
    worst: str
    verdict: str  # better, worse or open


@dataclass(frozen=True)
class ForestPlot:
    rows: list[ForestRow]
    frame: Frame
    ticks: list[Tick]
    zero: float
    width: float
    height: float


def forest_plot(summary: Summary, every: Sequence[Series], comparisons: Sequence[Comparison]) -> ForestPlot:
    ends = [end for one in comparisons for end in (one.low, one.high, one.difference) if not np.isnan(end)]
    marks = ticks(min([0.0, *ends]), max([0.0, *ends, 0.01]), 6)
    frame = Frame(158, 34, 300, FOREST_ROW * len(comparisons), (marks[0], marks[-1]))
    by_name = {series.policy: series for series in every}
    rows = [
        ForestRow(
            by_name[one.other], one, frame.top + FOREST_ROW * (place + 0.5), *_interval_ends(frame, one),
            f"{signed(one.worst_difference)} {shortened(task_name(summary, one.worst), 17)}" if one.worst else "",
            "better" if one.low > 0 else "worse" if one.high < 0 else "open",
        )
        for place, one in enumerate(comparisons)
    ]  # fmt: skip
    labels = [Tick(frame.x(value), signed(value, 2) if value else "0") for value in marks]
    return ForestPlot(rows, frame, labels, frame.x(0.0), 960, frame.bottom + 44)


def _interval_ends(frame: Frame, one: Comparison) -> tuple[float, float, float]:
    """Low end, middle and high end; without an interval all three are the middle."""
    middle = 0.0 if np.isnan(one.difference) else one.difference
    low, high = (middle, middle) if np.isnan(one.low) else (one.low, one.high)
    return frame.x(low), frame.x(middle), frame.x(high)


class HeatCell(NamedTuple):
    text: str
    level: str  # h0 … h9; empty where there was no run
    best: bool


class HeatRow(NamedTuple):
    task: str
    cells: list[HeatCell]


@dataclass(frozen=True)
class HeatMap:
    every: Sequence[Series]
    rows: list[HeatRow]
    full_colour: str  # what the full colour stands for
    levels: list[str]

    @property
    def dense(self) -> bool:
        return len(self.every) > HEAT_ROOMY

    def has_gap_before(self, place: int) -> bool:
        """Whether a gap stands before this column: between the policies and the references."""
        return place > 0 and [series.is_reference for series in self.every[place - 1 : place + 1]] == [False, True]


def heat_map(summary: Summary, every: Sequence[Series]) -> HeatMap:
    """Full colour is the best of all references on that task, or of all policies where there is no reference."""
    values = np.stack([summary.by_task(series.policy, summary.last) for series in every], axis=1)  # [task, policy]
    is_reference = np.array([series.is_reference for series in every])
    standard = is_reference if is_reference.any() else ~is_reference
    known = np.where(np.isnan(values), 0.0, values)
    full = np.where(known[:, standard].any(axis=1), known[:, standard].max(axis=1), known.max(axis=1))
    mine = np.where(is_reference, 0.0, known)
    best = (mine == mine.max(axis=1, keepdims=True)) & (mine > 0)
    values, full = np.vstack([values, mean(values, axis=0)]), np.append(full, full.mean())
    best = np.vstack([best, np.zeros(len(every), bool)])
    names = [*(shortened(task_name(summary, task), HEAT_LONGEST) for task in summary.tasks), "mean"]
    rows = [
        HeatRow(name, [_cell(*cell) for cell in zip(row, shares, is_best, strict=True)])
        for name, row, shares, is_best in zip(
            names, values, values / np.maximum(full, 1e-12)[:, None], best, strict=True
        )
    ]
    full_colour = "the highest reference" if is_reference.any() else "the best policy"
    return HeatMap(every, rows, full_colour, [f"h{level}" for level in range(HEAT_LEVELS)])


def _cell(value: float, share: float, best: bool) -> HeatCell:
    if np.isnan(value):
        return HeatCell("", "", False)
    return HeatCell(decimal(value, 2), f"h{min(HEAT_LEVELS - 1, int(HEAT_LEVELS * min(share, 1.0)))}", bool(best))


class CalibrationPlot(NamedTuple):
    series: Series
    calibration: Calibration
    frame: Frame
    dots: list[tuple[float, float]]
    path: str
    diagonal: str
    marks: list[Tick]


def calibration_plots(summary: Summary, every: Sequence[Series]) -> list[CalibrationPlot]:
    """All runs of a policy together. Both axes of all drawings end where the highest figure does."""
    measured = [
        (series, metrics.calibration(summary.runs_of(series.policy))) for series in every if not series.is_reference
    ]
    known = [(series, one) for series, one in measured if one is not None]
    highest = max((max(*one.predicted.tolist(), *one.observed.tolist()) for _, one in known), default=1.0)
    marks = ticks(0, max(highest, 0.01), 4)
    frame = Frame(46, 48, 150, 150, (0, marks[-1]), (0, marks[-1]))
    return [_calibration_plot(series, one, frame, marks) for series, one in known]


def _calibration_plot(series: Series, one: Calibration, frame: Frame, marks: list[float]) -> CalibrationPlot:
    dots = [
        (frame.x(p), frame.y(share)) for p, share in zip(one.predicted.tolist(), one.observed.tolist(), strict=True)
    ]
    diagonal = f"M{frame.left} {frame.bottom}L{frame.right} {frame.top}"
    labels = [Tick(value, f"{value:g}") for value in marks]
    return CalibrationPlot(series, one, frame, dots, frame.path(one.predicted, one.observed), diagonal, labels)


def spaced_apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places at least a gap apart, in the order of those wanted and as near to them as can be (in squares).

    With the i-th place written as z(i) + i · gap this is the nearest rising z, found by pooling neighbours.
    """
    order = np.argsort(np.asarray(wanted, np.float64), kind="stable")
    gap = min(gap, (high - low) / max(1, len(order) - 1))  # many stand closer rather than outside
    pools: list[tuple[float, int]] = []  # centre and size
    for place, which in enumerate(order):
        centre, size = wanted[int(which)] - place * gap, 1
        while pools and pools[-1][0] > centre:
            before, count = pools.pop()
            centre, size = (before * count + centre * size) / (count + size), size + count
        pools.append((centre, size))
    rising = np.concatenate([[], *(np.full(size, centre) for centre, size in pools)])
    placed = np.clip(rising, low, high - max(0, len(order) - 1) * gap) + gap * np.arange(len(order))
    places = np.empty(len(order))
    places[order] = placed
    return [round(place, 1) for place in places.tolist()]
