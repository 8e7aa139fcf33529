"""The harvest of a crawl as a drawing: blocks for a terminal, places for an SVG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.gateway.dashboard.axes import Frame, Tick, ticks
from crawlguide.gateway.dashboard.formatting import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    Points = Sequence[tuple[int, float]]

LEVELS = " ▁▂▃▄▅▆▇█"
ROWS = 8  # of a plot in a terminal
PLOT_ROWS_LABEL = 8  # characters before the axis


def rates(points: Points, cells: int) -> list[float]:
    """Relevant pages for each request, in so many equal stretches of the crawl."""
    if len(points) < 2:
        return []
    requests, relevant = (np.array(column, np.float64) for column in zip(*points, strict=True))
    edges = np.linspace(requests[0], requests[-1], min(cells, int(requests[-1] - requests[0])) + 1)
    found = np.interp(edges, requests, relevant)
    rising: list[float] = np.clip(np.diff(found) / np.diff(edges), 0, 1).tolist()
    return rising


def sparkline(points: Points, cells: int) -> str:
    """One block for each stretch; a full one stands for all pages relevant."""
    return "".join(LEVELS[round((len(LEVELS) - 1) * rate)] for rate in rates(points, cells))


def plot(points: Points, cells: int) -> list[str]:
    """Relevant pages against requests: one line of text for each row, with both axes."""
    if len(points) < 2:
        return []
    requests, relevant = (np.array(column, np.float64) for column in zip(*points, strict=True))
    edges = np.linspace(requests[0], requests[-1], cells)
    top = max(float(relevant[-1]), 1.0)
    heights = np.interp(edges, requests, relevant) / top * ROWS
    rows = ["relevant pages"]
    for row in range(ROWS - 1, -1, -1):
        label = f"{top * (row + 1) / ROWS:,.0f}" if row % 2 else ""
        blocks = "".join(LEVELS[round(min(max(height - row, 0.0), 1.0) * (len(LEVELS) - 1))] for height in heights)
        rows.append(f"{label:>{PLOT_ROWS_LABEL}} │{blocks}".rstrip())
    last = f"{int(requests[-1]):,} requests"
    rows.append(f"{'0':>{PLOT_ROWS_LABEL}} └{'─' * cells}")
    rows.append(f"{'':>{PLOT_ROWS_LABEL}}  0{last:>{cells - 1}}")
    return rows


@dataclass(frozen=True)
class Chart:
    """The drawing of the page."""

    frame: Frame
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    path: str
    most: str  # every request a relevant page
    width: int = 760
    height: int = 320


def chart(points: Points) -> Chart:
    requests, relevant = (np.array(column, np.float64) for column in zip(*points, strict=True))
    xs, ys = ticks(0, max(requests[-1], 6), 6), ticks(0, max(relevant[-1], 5), 5)  # whole numbers
    frame = Frame(60, 20, 660, 240, (0, xs[-1]), (0, ys[-1]))
    diagonal = np.array([0.0, min(xs[-1], ys[-1])])
    return Chart(
        frame,
        [Tick(frame.x(value), number(value)) for value in xs],
        [Tick(frame.y(value), number(value)) for value in ys],
        frame.path(requests, relevant),
        frame.path(diagonal, diagonal),
    )
