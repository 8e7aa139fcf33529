"""First discovered, first fetched: a plain queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.definition import CLASSIC, Fixed
from crawlguide.strategies.shared.composition import Composition, Top

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Batch


class Options(Fixed, frozen=True):
    kind: str = "breadth-first"


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Composition(Top(), First(), CLASSIC)


@dataclass(frozen=True)
class First:
    """1 / (1 + n) for the n-th URL discovered."""

    version: str = "first-1"

    def predict(self, batch: Batch) -> F64:
        value: F64 = np.reciprocal(1.0 + batch.sequence)
        return value
