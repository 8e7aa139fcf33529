"""Logistic regression on hashed features by AdaGrad, in one pass after the other; and its calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import F32, F64, I32, I64, kernel, nothing, one_f64
from crawlguide.policy.risk import kernels
from crawlguide.policy.risk.forms import formed
from crawlguide.policy.risk.model import Model
from crawlguide.training.risk.examples import weights, with_copies

if TYPE_CHECKING:
    from crawlguide.core import tables
    from crawlguide.training.risk.examples import Examples

PASSES, RATE = 2, 0.1


def fitted(examples: Examples, seed: int) -> Model:
    """Two models in one: of whole URLs, and of URLs whose host is hidden; what holds without it carries further."""
    chance = np.random.default_rng(seed)
    known = with_copies(examples, chance)
    whole, hidden = (_fit(known, hide, chance) for hide in (False, True))
    both = whole + hidden
    scale = float(np.abs(both).max()) / 127
    return Model(np.rint(both / scale).astype(np.int8), scale, 0.0, 1.0, 0.0)


def _fit(known: Examples, hide_host: bool, chance: np.random.Generator) -> tables.F64:
    text, seams = formed(known.url.tolist())
    if hide_host:
        seams[:, :2] = seams[:, 2:3]
    room = len(known) * (kernels.MOST // 4) + 3 * len(text)
    index, value, ends = np.empty(room, np.int32), np.empty(room, np.float32), np.empty(len(known), np.int64)
    kernels.extract(text, seams, index, value, ends)  # type: ignore[no-untyped-call]
    found, steps = np.zeros(kernels.FEATURES), np.full(kernels.FEATURES, 1e-4)
    for _ in range(PASSES):
        order = chance.permutation(len(known))
        descend(index, value, ends, known.label, weights(known), order, RATE, found, steps)  # type: ignore[no-untyped-call]
    return found


@kernel(nothing(I32, F32, I64, F64, F64, I64, one_f64, F64, F64))
def descend(index, value, ends, label, weight, order, rate, found, steps):  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917
    """One pass of AdaGrad."""
    for row in order:
        first = ends[row - 1] if row else 0
        total = 0.0
        for place in range(first, ends[row]):
            total += found[index[place]] * value[place]
        error = (1.0 / (1.0 + np.exp(-total)) - label[row]) * weight[row]
        for place in range(first, ends[row]):
            slope = error * value[place]
            steps[index[place]] += slope * slope
            found[index[place]] -= rate * slope / np.sqrt(steps[index[place]])


def calibrated(sums: tables.F64, label: tables.F64) -> tuple[float, float]:
    """Slope and offset of log odds (Platt), by Newton's method."""
    slope, offset = 0.0, 0.0
    columns = np.column_stack([sums, np.ones(len(sums))])
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(-np.clip(slope * sums + offset, -30, 30)))
        gradient = columns.T @ (p - label)
        curvature = (columns * (p * (1 - p))[:, None]).T @ columns + 1e-9 * np.eye(2)
        slope, offset = np.array([slope, offset]) - np.linalg.solve(curvature, gradient)
    return float(slope), float(offset)
