"""All figures as tables: what was found, what share of each reference that is, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.gateway.dashboard.formatting import visible
from crawlguide.lab import metrics
from crawlguide.lab.report.formatting import count, decimal, percent, requests

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crawlguide.core.tables import F64, I64, Mask
    from crawlguide.lab.report.charts import Series
    from crawlguide.lab.summary import Summary

MORE, LESS, NEITHER = 1, -1, 0  # is better
ROOMY = 14  # columns; more stand closer


class Column(NamedTuple):
    head: str
    value: Callable[[str], float]
    text: Callable[[float], str]
    better: int = MORE
    group: str = ""


class Entry(NamedTuple):
    text: str
    best: bool


@dataclass(frozen=True)
class Table:
    """`groups` are heads over several columns, with how many."""

    heads: list[str]
    rows: list[tuple[Series, list[Entry]]]
    groups: list[tuple[str, int]] = field(default_factory=list)

    @property
    def dense(self) -> bool:
        return len(self.heads) > ROOMY


def table_of(columns: Sequence[Column], every: Sequence[Series]) -> Table:
    """Marks the best of each column among those that are no reference."""
    values = np.array([[column.value(series.policy) for column in columns] for series in every]).reshape(len(every), -1)
    best = _best(values, np.array([column.better for column in columns]), [series.is_reference for series in every])
    rows = [
        (
            series,
            [Entry(column.text(value), bool(is_best)) for column, value, is_best in zip(columns, *row, strict=True)],
        )
        for series, *row in zip(every, values.tolist(), best.tolist(), strict=True)
    ]
    groups: dict[str, int] = {}
    for column in columns:
        groups[column.group] = groups.get(column.group, 0) + 1
    return Table([column.head for column in columns], rows, [] if list(groups) == [""] else list(groups.items()))


def _best(values: F64, better: I64, is_reference: Sequence[bool]) -> Mask:
    """Which values are the best of their column; none where all are equal."""
    score = np.where(np.isfinite(values) & (better != NEITHER), values * better, -np.inf)
    score[np.array(is_reference, np.bool_)] = -np.inf
    highest, lowest = score.max(axis=0), np.where(np.isinf(score), np.inf, score).min(axis=0)
    best: Mask = (score == highest) & (score > -np.inf) & (highest > lowest)
    return best


def what_was_found(summary: Summary, every: Sequence[Series]) -> Table:
    def means(figure: str) -> Callable[[str], float]:
        return lambda policy: summary.mean(policy, figure)

    def medians(figure: str) -> Callable[[str], float]:
        return lambda policy: summary.middle(policy, figure)

    def in_requests(value: float) -> str:
        return requests(value, summary.budget)

    harvests = [
        Column(f"@{count(k)}", means(f"harvest@{k}"), decimal, MORE, "harvest rate") for k in summary.checkpoints
    ]
    return table_of([
        *harvests,
        Column("AUC", means("auc"), decimal, MORE, "harvest rate"),
        Column("nDCG", means("ndcg"), decimal, MORE, "order"),
        Column("recall", means("recall"), decimal, MORE, "in the end"),
        Column("hosts", means("hosts"), lambda value: decimal(value, 1), MORE, "in the end"),
        Column("50 %", medians("to_50"), in_requests, LESS, "requests to"),
        Column("90 %", medians("to_90"), in_requests, LESS, "requests to"),
    ], every)  # fmt: skip


def shares_of_references(summary: Summary, every: Sequence[Series]) -> Table:
    """Each policy divided by each reference."""

    def over(reference: str, figure: str) -> Callable[[str], float]:
        return lambda policy: summary.over(policy, reference, figure)

    figures = {f"@{count(k)}": f"harvest@{k}" for k in summary.checkpoints} | {"AUC": "auc"}
    return table_of([
        Column(head, over(reference, figure), lambda value: decimal(value, 2), MORE, f"÷ {visible(reference)}")
        for reference in summary.references
        for head, figure in figures.items()
    ], every)  # fmt: skip


def what_it_cost(summary: Summary, every: Sequence[Series]) -> Table:
    pooled = {series.policy: metrics.calibration(summary.runs_of(series.policy)) for series in every}

    def calibrated(name: str) -> Callable[[str], float]:
        return lambda policy: getattr(pooled[policy], name, np.nan)

    wasted = {"traps": "traps", "duplicates": "duplicates", "dead": "dead links", "errors": "errors"}
    wasted |= {"redirects": "redirects"}
    return table_of([
        *(
            Column(head, lambda policy, figure=figure: summary.mean(policy, figure), percent, LESS, "requests spent on")  # type: ignore[misc]
            for figure, head in wasted.items()
        ),
        Column("ECE", calibrated("ece"), decimal, LESS, "calibration of p"),
        Column("Brier", calibrated("brier"), decimal, NEITHER, "calibration of p"),
        Column("base", calibrated("base"), decimal, NEITHER, "calibration of p"),
        Column("CPU µs", lambda policy: summary.mean(policy, "cpu_us"), count, LESS, "a decision"),
    ], every)  # fmt: skip
