"""The most linked first: n / (n + 10) for a URL to which n fetched pages link, ties at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlguide.core.definition import CLASSIC, Fixed
from crawlguide.strategies.shared.composition import Composition, Top
from crawlguide.strategies.shared.draws import TIE, fixed_by_id

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Batch


class Options(Fixed, frozen=True):
    kind: str = "in-degree"


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Composition(Top(), InDegree(seed), CLASSIC)


@dataclass(frozen=True)
class InDegree:
    seed: int = 0
    version: str = "in-degree-1"

    def predict(self, batch: Batch) -> F64:
        tie = fixed_by_id(batch.id, self.seed)
        value: F64 = (batch.parents + TIE * tie) / (batch.parents + 10.0)
        return value
