"""The relevance of the pages that link here: of the best of them, or of all on the mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.predictors.arrival import mixed

if TYPE_CHECKING:
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Batch

TIE = 1e-6


@dataclass(frozen=True)
class Parent:
    version: str = "parent-1"

    def predict(self, batch: Batch) -> F64:
        return batch.parent_best


@dataclass(frozen=True)
class Mean:
    """Of equals a random one goes first."""

    seed: int = 0
    version: str = "parent-mean-1"

    def predict(self, batch: Batch) -> F64:
        tie = mixed(batch.id ^ np.uint64(self.seed)) / 2.0**64
        value: F64 = batch.parent_sum / np.maximum(batch.parents, 1.0) * (1.0 - TIE) + TIE * tie
        return value
