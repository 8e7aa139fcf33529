"""The most linked first: how many of the fetched pages lead here, n / (n + 10); of equals a random one goes first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlguide.predictors.arrival import TIE, drawn_once

if TYPE_CHECKING:
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Batch


@dataclass(frozen=True)
class InDegree:
    seed: int = 0
    version: str = "in-degree-1"

    def predict(self, batch: Batch) -> F64:
        tie = drawn_once(batch.id, self.seed)
        value: F64 = (batch.parents + TIE * tie) / (batch.parents + 10.0)
        return value
