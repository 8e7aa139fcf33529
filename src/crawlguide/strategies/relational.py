"""The share of relevant pages among all pages known to link here, drawn towards 1/4 while few are known.

value = (Σ relevance of parents + 1/2) / (parents + 2)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlguide.core.definition import CLASSIC, Fixed
from crawlguide.strategies.shared.composition import Composition, Top

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Batch


@dataclass(frozen=True)
class Relational:
    version: str = "relational-1"

    def predict(self, batch: Batch) -> F64:
        value: F64 = (batch.parent_sum + 0.5) / (batch.parents + 2.0)
        return value


# Links with the largest share of relevant pages among all that lead to them first.


class Options(Fixed, frozen=True):
    kind: str = "relational"


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Composition(Top(), Relational(), CLASSIC)
