"""The comparison as a forest plot: one row for each other policy, its difference with the interval around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.lab.report.charts import Frame, Look, Tick, shortened, ticks
from crawlguide.lab.report.formatting import signed, task_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.lab.compare import Comparison
    from crawlguide.lab.study import Study

ROW = 30


class Row(NamedTuple):
    look: Look
    found: Comparison
    y: float
    low: float
    at: float
    high: float
    worst: str
    verdict: str  # better, worse or open


@dataclass(frozen=True)
class Forest:
    rows: list[Row]
    frame: Frame
    ticks: list[Tick]
    zero: float
    width: float
    height: float


def drawn(study: Study, looks: Sequence[Look], comparisons: Sequence[Comparison]) -> Forest:
    ends = [end for one in comparisons for end in (one.low, one.high, one.difference) if not np.isnan(end)]
    marks = ticks(min([0.0, *ends]), max([0.0, *ends, 0.01]), 6)
    frame = Frame(158, 34, 300, ROW * len(comparisons), (marks[0], marks[-1]))
    by_name = {look.policy: look for look in looks}
    rows = [
        Row(
            by_name[one.other], one, frame.top + ROW * (place + 0.5), *_places(frame, one),
            f"{signed(one.worst_difference)} {shortened(task_name(study, one.worst), 17)}" if one.worst else "",
            "better" if one.low > 0 else "worse" if one.high < 0 else "open",
        )
        for place, one in enumerate(comparisons)
    ]  # fmt: skip
    labels = [Tick(frame.x(value), signed(value, 2) if value else "0") for value in marks]
    return Forest(rows, frame, labels, frame.x(0.0), 960, frame.bottom + 44)


def _places(frame: Frame, one: Comparison) -> tuple[float, float, float]:
    """Low end, middle and high end; without an interval all three are the middle."""
    middle = 0.0 if np.isnan(one.difference) else one.difference
    low, high = (middle, middle) if np.isnan(one.low) else (one.low, one.high)
    return frame.x(low), frame.x(middle), frame.x(high)
