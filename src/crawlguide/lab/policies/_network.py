"""forager's network, 11 → 30 → 15 → 1 with LeakyReLU, and Adam: in numpy, so that one seed gives one history."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import F64

SLOPE, BETA, BETA_SQUARED, SMALL, CLIP = 0.1, 0.9, 0.999, 1e-8, 1.0


class Network:
    def __init__(self, sizes: tuple[int, ...], chance: np.random.Generator) -> None:
        self.weights: list[F64] = []
        for inner, outer in pairwise(sizes):
            self.weights += [chance.normal(0.0, np.sqrt(2.0 / inner), (inner, outer)), np.zeros(outer)]
        self._mean = [np.zeros_like(weight) for weight in self.weights]
        self._square = [np.zeros_like(weight) for weight in self.weights]
        self._steps = 0

    def values(self, x: F64) -> F64:
        return self._layers(x)[-1][:, 0]

    def copy_to(self, other: Network) -> None:
        other.weights = [weight.copy() for weight in self.weights]

    def step(self, x: F64, target: F64, importance: F64, rate: float) -> F64:
        """One step of Adam on the weighted square error; returns the errors."""
        layers = self._layers(x)
        error = layers[-1][:, 0] - target
        flow = (2.0 * importance * error / len(error))[:, None]
        slopes: list[F64] = []
        for layer in range(len(self.weights) // 2 - 1, -1, -1):
            slopes = [layers[layer].T @ flow, flow.sum(0), *slopes]
            if layer:
                flow = (flow @ self.weights[2 * layer].T) * np.where(layers[layer] > 0, 1.0, SLOPE)
        self._adam(slopes, rate)
        return error

    def _layers(self, x: F64) -> list[F64]:
        layers = [x]
        for layer in range(len(self.weights) // 2):
            x = x @ self.weights[2 * layer] + self.weights[2 * layer + 1]
            if 2 * layer + 2 < len(self.weights):
                x = np.where(x > 0, x, SLOPE * x)
            layers.append(x)
        return layers

    def _adam(self, slopes: list[F64], rate: float) -> None:
        self._steps += 1
        for place, slope in enumerate(slopes):
            cut = np.clip(slope, -CLIP, CLIP)
            self._mean[place] = BETA * self._mean[place] + (1.0 - BETA) * cut
            self._square[place] = BETA_SQUARED * self._square[place] + (1.0 - BETA_SQUARED) * cut**2
            mean = self._mean[place] / (1.0 - BETA**self._steps)
            square = self._square[place] / (1.0 - BETA_SQUARED**self._steps)
            self.weights[place] = self.weights[place] - rate * mean / (np.sqrt(square) + SMALL)
