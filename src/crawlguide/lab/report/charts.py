"""Who wears which colour: the same on every figure of a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.gateway.dashboard.formatting import visible
from crawlguide.lab.compare import subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64
    from crawlguide.lab.study import Study

COLOURS = 6  # of Okabe and Ito's, which also those tell apart who see fewer; the style sheet knows them
LONGEST = 22  # characters of a name that fit beside a line


@dataclass(frozen=True)
class Look:
    """A policy's name and the class that colours it: c0 … c5, `other` once these are used up, or `reference`."""

    policy: str
    name: str
    short: str
    kind: str


def looks(study: Study) -> list[Look]:
    """The compared policy first, then the others, the best first, then the references."""
    first = [subject(study)] if study.policies else []
    policies = first + [name for name in study.policies if name not in first]
    kinds = [f"c{place}" if place < COLOURS else "other" for place in range(len(policies))]
    kinds += ["reference"] * len(study.references)
    return [
        Look(policy, visible(policy), shortened(visible(policy)), kind)
        for policy, kind in zip(policies + study.references, kinds, strict=True)
    ]


def shortened(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


# From figures to places in a drawing: round ticks, scales, and labels that do not lie on each other.

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round values that enclose low … high, about so many of them: 0 … 0.47 -> 0, 0.1, … 0.5."""
    span = max(high - low, 1e-9)
    size = 10.0 ** np.floor(np.log10(span / about))
    step = next(factor * size for factor in STEPS if factor * size >= span / about * 0.999)
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    return [round(float(step * place), 10) for place in np.arange(first, last + 1)]


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


def apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places at least a gap apart, in the order of those wanted and as near to them as can be (in squares).

    With the i-th place written as z(i) + i · gap this is the nearest rising z, found by pooling neighbours.
    """
    order = np.argsort(np.asarray(wanted, np.float64), kind="stable")
    gap = min(gap, (high - low) / max(1, len(order) - 1))  # many stand closer rather than outside
    pools: list[tuple[float, int]] = []  # mean and size
    for place, number in enumerate(order):
        mean, size = wanted[int(number)] - place * gap, 1
        while pools and pools[-1][0] > mean:
            before, count = pools.pop()
            mean, size = (before * count + mean * size) / (count + size), size + count
        pools.append((mean, size))
    rising = np.concatenate([[], *(np.full(size, mean) for mean, size in pools)])
    placed = np.clip(rising, low, high - max(0, len(order) - 1) * gap) + gap * np.arange(len(order))
    found = np.empty(len(order))
    found[order] = placed
    return [round(place, 1) for place in found.tolist()]
