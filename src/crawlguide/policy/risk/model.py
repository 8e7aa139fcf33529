"""The risk model that comes with the package: a calibrated linear model over hashed features of URLs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from crawlguide.core.errors import ConfigError
from crawlguide.policy.risk import features
from crawlguide.policy.risk.url_text import url_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F32, F64

SHIPPED = Path(__file__).with_name("model.npz")


@dataclass(frozen=True)
class Model:
    weights: npt.NDArray[np.int8]
    scale: float
    bias: float
    slope: float  # calibration: log odds = slope · sum + offset
    offset: float

    def probabilities(self, urls: Sequence[str]) -> F32:
        """How likely each canonical URL is malicious."""
        return (1.0 / (1.0 + np.exp(-self.odds(urls)))).astype(np.float32)

    def odds(self, urls: Sequence[str]) -> F64:
        """The same as log odds."""
        return self.slope * self.sums(urls) + self.offset

    def sums(self, urls: Sequence[str]) -> F64:
        found = np.empty(len(urls))
        features.sum_weights(*url_texts(urls), self.weights, self.scale, self.bias, found)
        return found

    def save(self, path: Path) -> None:
        np.savez_compressed(
            path, weights=self.weights, numbers=np.array([self.scale, self.bias, self.slope, self.offset])
        )


def load(path: Path) -> Model:
    """Only arrays are read, never code."""
    try:
        with np.load(BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            weights, numbers = stored["weights"], stored["numbers"].tolist()
    except (OSError, EOFError, ValueError, KeyError, BadZipFile) as problem:
        raise ConfigError(f"{path}: expected a model of risk, got something else: {problem}") from None
    if weights.dtype != np.int8 or weights.shape != (features.FEATURES,) or len(numbers) != 4:
        raise ConfigError(
            f"{path}: expected {features.FEATURES} weights of one byte, got {weights.dtype}{weights.shape}"
        )
    return Model(weights, *numbers)


@cache
def shipped() -> Model:
    return load(SHIPPED)
