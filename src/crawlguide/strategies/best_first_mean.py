"""Links of relevant pages first: the mean relevance of all pages that link here, ties at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.definition import CLASSIC, Fixed
from crawlguide.strategies.shared.composition import Composition, Top
from crawlguide.strategies.shared.draws import TIE, fixed_by_id

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Batch


class Options(Fixed, frozen=True):
    kind: str = "best-first-mean"


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Composition(Top(), Mean(seed), CLASSIC)


@dataclass(frozen=True)
class Mean:
    seed: int = 0
    version: str = "parent-mean-1"

    def predict(self, batch: Batch) -> F64:
        tie = fixed_by_id(batch.id, self.seed)
        value: F64 = batch.parent_sum / np.maximum(batch.parents, 1.0) * (1.0 - TIE) + TIE * tie
        return value
