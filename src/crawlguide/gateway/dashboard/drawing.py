"""What the page draws: a harvest as a curve over bars, a score as a bar of its terms. Only numbers come out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.tables import F64

WIDTH, HEIGHT = 1_000.0, 100.0  # of the drawing; the page stretches it
SLICES = 40
SCALES = (0.05, 0.1, 0.25, 0.5, 1.0)  # what the top of a curve may stand for
LATELY = 0.1  # of all fetches, but at least this many:
LATELY_AT_LEAST = 20


class Box(NamedTuple):
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Curve:
    """The share of relevant fetches: so far (a line) and in every slice (bars), over all fetches."""

    line: str
    bars: list[Box]
    top: float  # the share at the upper edge
    fetches: int
    lately: float  # share of relevant among the newest fetches
    lately_of: int


def curve(harvest: Sequence[tuple[int, int]], fetches: int, relevant: int) -> Curve | None:
    """None before the first fetch. What happened before the first point is one straight line from nothing."""
    known = np.array([(0, 0), *(point for point in harvest if point[0] < fetches), (fetches, relevant)], np.float64)
    if not fetches:
        return None
    edges = np.linspace(0, fetches, min(SLICES, fetches) + 1)
    found = np.interp(edges, known[:, 0], known[:, 1])
    in_slice = np.clip(np.diff(found) / np.diff(edges), 0.0, 1.0)
    so_far = np.clip(found[1:] / edges[1:], 0.0, 1.0)
    top = next(scale for scale in SCALES if scale >= min(1.0, max(in_slice.max(), so_far.max())))
    span = min(fetches, max(LATELY_AT_LEAST, round(LATELY * fetches)))
    lately = (relevant - float(np.interp(fetches - span, known[:, 0], known[:, 1]))) / span
    return Curve(_line(edges[1:] / fetches, so_far / top), _bars(in_slice / top), top, fetches, max(lately, 0.0), span)


def _line(x: F64, y: F64) -> str:
    points = [f"{WIDTH * at:.1f} {HEIGHT * (1 - high):.2f}" for at, high in zip(x, y, strict=True)]
    return f"M0 {points[0].split()[1]}L" + "L".join(points)


def _bars(heights: F64) -> list[Box]:
    wide = WIDTH / len(heights)
    boxes = [Box(number * wide, HEIGHT * (1 - high), wide, HEIGHT * high) for number, high in enumerate(heights)]
    return [Box(*(round(float(part), 2) for part in box)) for box in boxes]


class Part(NamedTuple):
    """One term of a score: from where to where it reaches, in hundredths of the longest score."""

    term: str
    x: float
    width: float
    value: float


def parts(terms: Mapping[str, float], longest: float) -> list[Part]:
    """Terms that add stand one after the other; those that take away lie over their end."""
    scale, end, drawn = 100.0 / max(longest, 1e-9), 0.0, []
    for term, value in sorted(terms.items(), key=lambda item: item[1] < 0):
        start, wide = (end, value) if value >= 0 else (max(0.0, end + value), min(end, -value))
        end = end + value if value >= 0 else start
        if wide * scale >= 0.05:
            drawn.append(Part(term, round(scale * start, 2), round(scale * wide, 2), value))
    return drawn
