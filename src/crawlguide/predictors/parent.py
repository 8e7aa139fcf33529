"""The relevance of the pages that link here: of the best of them, or of all on the mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.predictors.arrival import TIE, drawn_once

if TYPE_CHECKING:
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Batch


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
        tie = drawn_once(batch.id, self.seed)
        value: F64 = batch.parent_sum / np.maximum(batch.parents, 1.0) * (1.0 - TIE) + TIE * tie
        return value
