"""The largest share of relevant pages among all that link here first.

value = (Σ relevance of parents + 1/2) / (parents + 2): drawn towards 1/4 while few parents are known
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


class Options(Fixed, frozen=True):
    kind: str = "relational"


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Composition(Top(), Relational(), CLASSIC)


@dataclass(frozen=True)
class Relational:
    version: str = "relational-1"

    def predict(self, batch: Batch) -> F64:
        value: F64 = (batch.parent_sum + 0.5) / (batch.parents + 2.0)
        return value
