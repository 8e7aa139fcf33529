"""Calibration, one small drawing for each policy that said chances: what was said against what was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from crawlguide.lab import metrics
from crawlguide.lab.report.charts import Frame, Tick, ticks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.lab.metrics import Calibration
    from crawlguide.lab.report.charts import Look
    from crawlguide.lab.study import Study


class Panel(NamedTuple):
    look: Look
    found: Calibration
    frame: Frame
    dots: list[tuple[float, float]]
    path: str
    diagonal: str
    marks: list[Tick]


def drawn(study: Study, looks: Sequence[Look]) -> list[Panel]:
    """All runs of a policy together. Both axes of all drawings end where the highest figure does."""
    found = [(look, metrics.calibration(study.runs_of(look.policy))) for look in looks if look.kind != "reference"]
    known = [(look, one) for look, one in found if one is not None]
    highest = max((max(*one.said.tolist(), *one.seen.tolist()) for _, one in known), default=1.0)
    marks = ticks(0, max(highest, 0.01), 4)
    frame = Frame(46, 48, 150, 150, (0, marks[-1]), (0, marks[-1]))
    return [_panel(look, one, frame, marks) for look, one in known]


def _panel(look: Look, found: Calibration, frame: Frame, marks: list[float]) -> Panel:
    dots = [(frame.x(said), frame.y(seen)) for said, seen in zip(found.said.tolist(), found.seen.tolist(), strict=True)]
    diagonal = f"M{frame.left} {frame.bottom}L{frame.right} {frame.top}"
    labels = [Tick(value, f"{value:g}") for value in marks]
    return Panel(look, found, frame, dots, frame.path(found.said, found.seen), diagonal, labels)
