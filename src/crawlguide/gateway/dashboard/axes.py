"""The axes of a drawing: where values lie in it, and round values to mark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import F64

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)  # of ticks


class Tick(NamedTuple):
    at: float  # where in the drawing
    text: str


@dataclass(frozen=True)
class Frame:
    """The part of a drawing inside its axes, and what its edges stand for."""

    left: float
    top: float
    width: float
    height: float
    x_range: tuple[float, float]
    y_range: tuple[float, float] = (0.0, 1.0)

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def x(self, value: float) -> float:
        low, high = self.x_range
        return round(self.left + self.width * (value - low) / (high - low), 1)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return round(self.bottom - self.height * (value - low) / (high - low), 1)

    def path(self, xs: F64, ys: F64) -> str:
        """A line through all points that are known."""
        known = ~np.isnan(ys)
        points = (f"{self.x(x)} {self.y(y)}" for x, y in zip(xs[known].tolist(), ys[known].tolist(), strict=True))
        return "M" + "L".join(points) if known.any() else ""


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round values that enclose low … high, about so many of them: 0 … 0.47 -> 0, 0.1, … 0.5."""
    span = max(high - low, 1e-9)
    size = 10.0 ** np.floor(np.log10(span / about))
    step = next(factor * size for factor in STEPS if factor * size >= span / about * 0.999)
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    return [round(float(step * place), 10) for place in np.arange(first, last + 1)]
