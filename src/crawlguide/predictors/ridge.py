"""Linear regression, one example at a time: the inverse of what was seen is kept by Sherman and Morrison's formula.

w = A⁻¹ b,  A = I + Σ x xᵀ,  b = w₀ + Σ y x;   how uncertain: √(xᵀ A⁻¹ x)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import F64 as FLOATS
from crawlguide.core.kernels import kernel, matrix, nothing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.notebook import Notebook
    from crawlguide.core.tables import F64


class Ridge:
    """`first` are the weights to begin with (w₀), `trust` is how many examples they stand for (λ)."""

    def __init__(self, notebook: Notebook, name: str, first: Sequence[float], trust: float = 1.0) -> None:
        size = len(first)
        shape = [("inverse", np.float64, (size, size)), ("moment", np.float64, size), ("weights", np.float64, size)]
        self._sheet = notebook.sheet(name, np.dtype(shape))
        if not self._sheet.used:
            self._sheet.fit(1)
            self._sheet.rows["inverse"][0] = np.eye(size) / trust
            self._sheet.rows["moment"][0] = trust * np.array(first)
            self._sheet.rows["weights"][0] = first
            self._sheet.changed(np.zeros(1, np.int64))

    @property
    def weights(self) -> F64:
        found: F64 = self._sheet.rows["weights"][0]
        return found

    def mean(self, x: F64) -> F64:
        """What is expected of each row of `x`."""
        value: F64 = x @ self.weights
        return value

    def width(self, x: F64) -> F64:
        """How uncertain that is."""
        value: F64 = np.sqrt(np.einsum("ij,jk,ik->i", x, self._sheet.rows["inverse"][0], x))
        return value

    def learn(self, x: F64, y: F64) -> None:
        """One example after the other."""
        one = self._sheet.rows[0]
        step(one["inverse"], one["moment"], one["weights"], x, y)
        self._sheet.changed(np.zeros(1, np.int64))


@kernel(nothing(matrix, FLOATS, FLOATS, matrix, FLOATS))
def step(inverse, moment, weights, x, y):  # type: ignore[no-untyped-def]
    size = len(moment)
    gain = np.empty(size)
    for number in range(len(y)):
        row = x[number]
        scale = 1.0
        for i in range(size):
            gain[i] = 0.0
            for j in range(size):
                gain[i] += inverse[i, j] * row[j]
            scale += gain[i] * row[i]
        for i in range(size):
            moment[i] += y[number] * row[i]
            for j in range(size):
                inverse[i, j] -= gain[i] * gain[j] / scale
    for i in range(size):
        weights[i] = 0.0
        for j in range(size):
            weights[i] += inverse[i, j] * moment[j]
