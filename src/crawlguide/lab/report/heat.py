"""The heat map: what every policy found on every task, coloured by how much of the possible that was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.lab.report.charts import shortened
from crawlguide.lab.report.formatting import decimal, task_name
from crawlguide.lab.study import mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.lab.report.charts import Look
    from crawlguide.lab.study import Study

LEVELS = 10
ROOMY = 12  # columns; more stand closer
LONGEST = 26


class Cell(NamedTuple):
    text: str
    level: str  # h0 … h9; empty where there was no run
    best: bool


class HeatRow(NamedTuple):
    task: str
    cells: list[Cell]


@dataclass(frozen=True)
class HeatMap:
    looks: Sequence[Look]
    rows: list[HeatRow]
    against: str  # what the full colour stands for
    levels: list[str]

    @property
    def dense(self) -> bool:
        return len(self.looks) > ROOMY

    def is_apart(self, place: int) -> bool:
        """Whether a gap stands before this column: between the policies and the references."""
        return place > 0 and [look.kind == "reference" for look in self.looks[place - 1 : place + 1]] == [False, True]


def drawn(study: Study, looks: Sequence[Look]) -> HeatMap:
    """Full colour is the best of all references on that task, or of all policies where there is no reference."""
    values = np.stack([study.by_task(look.policy, study.last) for look in looks], axis=1)  # [task, policy]
    is_reference = np.array([look.kind == "reference" for look in looks])
    judges = is_reference if is_reference.any() else ~is_reference
    known = np.where(np.isnan(values), 0.0, values)
    full = np.where(known[:, judges].any(axis=1), known[:, judges].max(axis=1), known.max(axis=1))
    mine = np.where(is_reference, 0.0, known)
    best = (mine == mine.max(axis=1, keepdims=True)) & (mine > 0)
    values, full = np.vstack([values, mean(values, axis=0)]), np.append(full, full.mean())
    best = np.vstack([best, np.zeros(len(looks), bool)])
    names = [*(shortened(task_name(study, task), LONGEST) for task in study.tasks), "mean"]
    rows = [
        HeatRow(name, [_cell(*cell) for cell in zip(row, shares, is_best, strict=True)])
        for name, row, shares, is_best in zip(
            names, values, values / np.maximum(full, 1e-12)[:, None], best, strict=True
        )
    ]
    against = "the highest reference" if is_reference.any() else "the best policy"
    return HeatMap(looks, rows, against, [f"h{level}" for level in range(LEVELS)])


def _cell(value: float, share: float, best: bool) -> Cell:
    if np.isnan(value):
        return Cell("", "", False)
    return Cell(decimal(value, 2), f"h{min(LEVELS - 1, int(LEVELS * min(share, 1.0)))}", bool(best))
