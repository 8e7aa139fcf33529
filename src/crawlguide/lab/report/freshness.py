"""Replays of page changes for people: tables in the terminal, and one HTML page with everything in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.console import Group
from rich.text import Text

from crawlguide.gateway.dashboard.axes import Frame, Tick, ticks
from crawlguide.gateway.dashboard.formatting import number, visible
from crawlguide.gateway.transfers import written
from crawlguide.lab.freshness import results
from crawlguide.lab.freshness.results import Summary
from crawlguide.lab.report.charts import COLOURS, Label, Series, spaced_apart
from crawlguide.lab.report.formatting import decimal, percent, shortened, signed, span
from crawlguide.lab.report.page import rendered
from crawlguide.lab.report.terminal import columns
from crawlguide.lab.summary import mean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rich.console import RenderableType
    from rich.table import Table

    from crawlguide.core.tables import F64
    from crawlguide.lab.freshness.results import Difference, Results, Run

POINTS = 60  # of a curve: days are taken together where there are more
LEARNED_BY = 30  # days
LEAST_SAID = 5e-5  # a smaller difference rounds to nothing
Task = tuple[str, float]


# In the terminal.


def tables(document: Results) -> RenderableType:
    """Fits into 80 columns."""
    summary = Summary(document)
    parts: list[RenderableType] = [_freshness_table(summary, web) for web in _webs(summary)]
    parts.append(_other_figures(summary))
    if differences := summary.differences():
        parts += [_difference_table(summary, differences), Text(headline(summary))]
    return Group(*parts)


def headline(summary: Summary) -> str:
    mine = visible(summary.policies[0])
    said = f"{mine}: copies are current {percent(summary.mean(summary.policies[0]))} of the time"
    differences = summary.differences()
    if not differences:
        return f"{said}."
    nearest = min(differences, key=lambda one: one.mean)
    worst = min(differences, key=lambda one: one.worst_difference)
    said += f", {_points(nearest.mean)} than with the strongest other policy, {visible(nearest.other)}"
    if worst.worst_difference <= -LEAST_SAID:
        return (
            f"{said}; at worst, {_points(worst.worst_difference)} than {visible(worst.other)} on {name(worst.worst)}."
        )
    return f"{said}; nowhere less than with any other."


def _points(difference: float) -> str:
    return f"{decimal(100 * abs(difference), 2)} points {'less' if difference < 0 else 'more'}"


def name(task: Task) -> str:
    web, share = task
    return f"{visible(web)} at {budget(share)}"


def budget(share: float) -> str:
    """As it is given on the command line: the share of the pages in a day."""
    return f"{100 * share:g} %"


def _webs(summary: Summary) -> list[str]:
    return list(dict.fromkeys(web for web, _ in summary.tasks))


def _shares(summary: Summary, web: str) -> list[float]:
    return [share for one, share in summary.tasks if one == web]


def _freshness_table(summary: Summary, web: str) -> Table:
    shares = _shares(summary, web)
    table = columns(f"Freshness on {visible(web)}", "", ["pages visited in a day", *map(budget, shares)])
    for policy in summary.policies + summary.references:
        values = [_at(summary, policy, (web, share)) for share in shares]
        if not np.isnan(values).all():
            style = "dim" if policy in summary.references else "bold" if policy == summary.policies[0] else ""
            table.add_row(shortened(visible(policy)), *(decimal(value, 4) for value in values), style=style)
    return table


def _at(summary: Summary, policy: str, task: Task, figure: Callable[[Run], float] = results.freshness) -> float:
    return float(summary.by_task(policy, figure)[summary.tasks.index(task)])


def _other_figures(summary: Summary) -> Table:
    heads = ["mean over all", "freshness", "age, days", "for nothing", "of optimum", f"from day {LEARNED_BY}"]
    table = columns("What it cost", "for nothing: requests that saw no change; of optimum: where that is known", heads)
    for policy in summary.policies + summary.references:
        table.add_row(shortened(visible(policy)), *_figures(summary, policy))
    return table


def _figures(summary: Summary, policy: str) -> list[str]:
    return [
        decimal(summary.mean(policy), 4),
        decimal(summary.mean(policy, results.age), 2),
        percent(summary.mean(policy, results.for_nothing)),
        percent(summary.mean(policy, results.of_optimum)),
        percent(summary.mean(policy, learned)),
    ]


def learned(run: Run) -> float:
    """The share of the optimum after the first month, where there is more than that."""
    return results.of_optimum(run, LEARNED_BY) if run.days > LEARNED_BY else np.nan


def _difference_table(summary: Summary, differences: Sequence[Difference]) -> Table:
    caption = "in points; the worst web and budget is named"
    table = columns(f"{visible(summary.policies[0])} against", caption, ["", "difference", "95 % interval", "worst"])
    table.add_column("on")
    for one in differences:
        figures = signed(100 * one.mean, 2), span(100 * one.low, 100 * one.high), signed(100 * one.worst_difference, 2)
        table.add_row(shortened(visible(one.other)), *figures, shortened(name(one.worst), 30))
    return table


# As a page.


class Curve(NamedTuple):
    series: Series
    path: str


@dataclass(frozen=True)
class Chart:
    title: str
    frame: Frame
    curves: list[Curve]
    labels: list[Label]
    x_ticks: list[Tick]
    y_ticks: list[Tick]


class Cell(NamedTuple):
    text: str
    best: bool


class Row(NamedTuple):
    series: Series
    cells: list[Cell]


class Grid(NamedTuple):
    """Freshness of every policy on one web, a column for each budget."""

    web: str
    heads: list[str]
    rows: list[Row]


class ForestRow(NamedTuple):
    series: Series
    one: Difference
    y: float
    low: float
    at: float
    high: float
    verdict: str
    worst: str


class Forest(NamedTuple):
    rows: list[ForestRow]
    frame: Frame
    ticks: list[Tick]
    zero: float
    height: float


def write_html(document: Results, path: Path) -> None:
    """The file gets its name when it is whole."""
    with written(path) as file:
        file.write(html(document).encode())


def html(document: Results) -> str:
    summary = Summary(document)
    every = _every(summary)
    differences = summary.differences()
    return rendered(
        "freshness.html",
        document=document,
        headline=headline(summary) if summary.policies else "",
        webs=[visible(web) for web in _webs(summary)],
        every=every,
        repeats=len(summary.repeats),
        grids=[_grid(summary, every, web) for web in _webs(summary)],
        costs=[(one, _figures(summary, one.policy)) for one in every],
        days=[_days_chart(summary, every, task) for task in summary.tasks],
        ages=[_budget_chart(summary, every, web, results.age, "age") for web in _webs(summary)],
        spent=[_budget_chart(summary, every, web, results.freshness, "freshness") for web in _webs(summary)],
        forest=_forest(every, differences) if differences else None,
        learned_by=LEARNED_BY,
        budgets=[budget(share) for share in sorted({share for _, share in summary.tasks})],
    )


def _every(summary: Summary) -> list[Series]:
    """Ours first, then the others, the best first, then the references."""
    classes = [f"c{place}" if place < COLOURS else "other" for place in range(len(summary.policies))]
    classes += ["reference"] * len(summary.references)
    return [
        Series(policy, visible(policy), shortened(visible(policy)), css_class)
        for policy, css_class in zip(summary.policies + summary.references, classes, strict=True)
    ]


def _grid(summary: Summary, every: Sequence[Series], web: str) -> Grid:
    shares = _shares(summary, web)
    values = np.array([[_at(summary, one.policy, (web, share)) for share in shares] for one in every])
    mine = np.where([[one.is_reference] for one in every], np.nan, values)
    highest = np.nanmax(mine, axis=0) if not np.isnan(mine).all() else np.full(len(shares), np.nan)
    rows = [
        Row(one, [Cell(decimal(value, 4), not one.is_reference and value == best) for value, best in
                  zip(row.tolist(), highest.tolist(), strict=True)])
        for one, row in zip(every, values, strict=True)
        if not np.isnan(row).all()
    ]  # fmt: skip
    return Grid(visible(web), [budget(share) for share in shares], rows)


def _days_chart(summary: Summary, every: Sequence[Series], task: Task) -> Chart:
    """Freshness of every day, or of some days together."""
    curves = {one.policy: _by_days(summary.runs(one.policy, task)) for one in every if summary.runs(one.policy, task)}
    at = next(iter(curves.values()))[0]
    lowest = min(float(np.nanmin(values)) for _, values in curves.values())
    frame = Frame(42, 26, 168, 118, (0.0, float(at[-1])), _range(lowest, 1.0))
    shown = [one for one in every if one.policy in curves]
    paths = [Curve(one, frame.path(*curves[one.policy])) for one in reversed(shown)]
    ends = {one.policy: float(curves[one.policy][1][-1]) for one in shown}
    return Chart(
        shortened(visible(task[0]), 24) + f" at {budget(task[1])}", frame, paths, _labels(frame, shown, ends),
        [Tick(frame.x(value), number(round(value))) for value in (0.0, float(at[-1]))],
        [Tick(frame.y(value), f"{value:g}") for value in ticks(*frame.y_range, 3) if frame.y_range[0] <= value <= 1.0],
    )  # fmt: skip


def _by_days(runs: Sequence[Run]) -> tuple[F64, F64]:
    """The middles of up to `POINTS` spans of days, and freshness there: the mean over repeats."""
    days = runs[0].days
    edges = np.unique(np.linspace(0, days, min(days, POINTS) + 1).astype(int))
    spans = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    values = np.array([[results.freshness(run, since, until) for since, until in spans] for run in runs])
    return edges[1:].astype(np.float64), mean(values, axis=0)


def _budget_chart(
    summary: Summary, every: Sequence[Series], web: str, figure: Callable[[Run], float], what: str
) -> Chart:
    """A figure over the budget, which has a logarithmic scale."""
    shares = _shares(summary, web)
    curves = {
        one.policy: np.array([_at(summary, one.policy, (web, share), figure) for share in shares]) for one in every
    }
    shown = [one for one in every if not np.isnan(curves[one.policy]).all()]
    all_values = np.concatenate([curves[one.policy] for one in shown])
    places = np.log(np.array(shares)) if len(shares) > 1 else np.array([0.0])
    wide = (float(places[0]), float(places[-1])) if len(shares) > 1 else (-1.0, 0.0)
    high = (
        _range(float(np.nanmin(all_values)), 1.0) if what == "freshness" else (0.0, float(np.nanmax(all_values)) or 1.0)
    )
    frame = Frame(42, 26, 168, 118, wide, high)
    paths = [Curve(one, frame.path(places, curves[one.policy])) for one in reversed(shown)]
    ends = {one.policy: float(curves[one.policy][-1]) for one in shown}
    return Chart(
        shortened(visible(web), 44), frame, paths, _labels(frame, shown, ends),
        [Tick(frame.x(float(place)), budget(share)) for place, share in zip(places, shares, strict=True)],
        [Tick(frame.y(value), f"{value:g}") for value in ticks(*high, 3) if high[0] <= value <= high[1]],
    )  # fmt: skip


def _range(low: float, high: float) -> tuple[float, float]:
    """Round values around them, at least a hundredth apart."""
    return min(ticks(low, high, 3)[0], high - 0.01), high


def _labels(frame: Frame, every: Sequence[Series], ends: dict[str, float]) -> list[Label]:
    """The three highest and the first of all."""
    known = [one for one in every if not np.isnan(ends[one.policy])]
    best = sorted(known, key=lambda one: -ends[one.policy])[:3]
    named = [one for one in known if one in best or one is known[0]]
    at = [frame.y(ends[one.policy]) for one in named]
    places = spaced_apart(at, 12, frame.top, frame.bottom)
    return [
        Label(one, place, end, decimal(ends[one.policy], 3)) for one, place, end in zip(named, places, at, strict=True)
    ]


def _forest(every: Sequence[Series], differences: Sequence[Difference]) -> Forest:
    points = [100 * end for one in differences for end in (one.low, one.mean, one.high) if not np.isnan(end)]
    marks = ticks(min([0.0, *points]), max([0.0, *points, 0.1]), 6)
    frame = Frame(158, 34, 300, 30 * len(differences), (marks[0], marks[-1]))
    by_name = {one.policy: one for one in every}
    rows = []
    for place, one in enumerate(differences):
        low, high = (one.mean, one.mean) if np.isnan(one.low) else (one.low, one.high)
        verdict = "better" if one.low > 0 else "worse" if one.high < 0 else "open"
        worst = f"{signed(100 * one.worst_difference, 2)} {shortened(name(one.worst), 24)}"
        left, at, right = (frame.x(100 * value) for value in (low, one.mean, high))
        y = frame.top + 30 * (place + 0.5)
        rows.append(ForestRow(by_name[one.other], one, y, left, at, right, verdict, worst))
    labels = [Tick(frame.x(value), signed(value, 1) if value else "0") for value in marks]
    return Forest(rows, frame, labels, frame.x(0.0), frame.bottom + 44)
