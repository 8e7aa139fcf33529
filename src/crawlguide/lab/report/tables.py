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

    from crawlguide.core.tables import F64
    from crawlguide.lab.report.charts import Look
    from crawlguide.lab.study import Study

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
    rows: list[tuple[Look, list[Entry]]]
    groups: list[tuple[str, int]] = field(default_factory=list)

    @property
    def dense(self) -> bool:
        return len(self.heads) > ROOMY


def made(columns: Sequence[Column], looks: Sequence[Look]) -> Table:
    """Marks the best of each column among those that are no reference."""
    values = np.array([[column.value(look.policy) for column in columns] for look in looks]).reshape(len(looks), -1)
    signs = np.array([column.better for column in columns])
    judged = np.where(np.isnan(values) | np.isinf(values) | (signs == NEITHER), -np.inf, values * np.maximum(signs, -1))
    judged[[look.kind == "reference" for look in looks]] = -np.inf
    best = (judged == judged.max(axis=0)) & (judged > -np.inf) & (judged.max(axis=0) > _least(judged))
    rows = [
        (look, [Entry(column.text(value), bool(is_best)) for column, value, is_best in zip(columns, *row, strict=True)])
        for look, *row in zip(looks, values.tolist(), best.tolist(), strict=True)
    ]
    groups: dict[str, int] = {}
    for column in columns:
        groups[column.group] = groups.get(column.group, 0) + 1
    return Table([column.head for column in columns], rows, [] if list(groups) == [""] else list(groups.items()))


def _least(judged: F64) -> F64:
    """The lowest finite value of each column: where it is also the highest, nobody is best."""
    lowest: F64 = np.where(np.isinf(judged), np.inf, judged).min(axis=0)
    return lowest


def finding(study: Study, looks: Sequence[Look]) -> Table:
    def means(figure: str) -> Callable[[str], float]:
        return lambda policy: study.mean(policy, figure)

    def medians(figure: str) -> Callable[[str], float]:
        return lambda policy: study.middle(policy, figure)

    def in_requests(value: float) -> str:
        return requests(value, study.budget)

    harvests = [Column(f"@{count(k)}", means(f"harvest@{k}"), decimal, MORE, "harvest rate") for k in study.checkpoints]
    return made([
        *harvests,
        Column("AUC", means("auc"), decimal, MORE, "harvest rate"),
        Column("nDCG", means("ndcg"), decimal, MORE, "order"),
        Column("recall", means("recall"), decimal, MORE, "in the end"),
        Column("hosts", means("hosts"), lambda value: decimal(value, 1), MORE, "in the end"),
        Column("50 %", medians("to_50"), in_requests, LESS, "requests to"),
        Column("90 %", medians("to_90"), in_requests, LESS, "requests to"),
    ], looks)  # fmt: skip


def shares(study: Study, looks: Sequence[Look]) -> Table:
    """Each policy divided by each reference."""

    def over(reference: str, figure: str) -> Callable[[str], float]:
        return lambda policy: study.over(policy, reference, figure)

    figures = {f"@{count(k)}": f"harvest@{k}" for k in study.checkpoints} | {"AUC": "auc"}
    return made([
        Column(head, over(reference, figure), lambda value: decimal(value, 2), MORE, f"÷ {visible(reference)}")
        for reference in study.references
        for head, figure in figures.items()
    ], looks)  # fmt: skip


def cost(study: Study, looks: Sequence[Look]) -> Table:
    pooled = {look.policy: metrics.calibration(study.runs_of(look.policy)) for look in looks}

    def calibrated(name: str) -> Callable[[str], float]:
        return lambda policy: getattr(pooled[policy], name, np.nan)

    wasted = {"traps": "traps", "duplicates": "duplicates", "dead": "dead links", "errors": "errors"}
    wasted |= {"redirects": "redirects"}
    return made([
        *(
            Column(head, lambda policy, figure=figure: study.mean(policy, figure), percent, LESS, "requests spent on")  # type: ignore[misc]
            for figure, head in wasted.items()
        ),
        Column("ECE", calibrated("ece"), decimal, LESS, "calibration of p"),
        Column("Brier", calibrated("brier"), decimal, NEITHER, "calibration of p"),
        Column("base", calibrated("base"), decimal, NEITHER, "calibration of p"),
        Column("CPU µs", lambda policy: study.mean(policy, "cpu_us"), count, LESS, "a decision"),
    ], looks)  # fmt: skip
