"""In random order, but the same order for the same seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlguide.core.definition import CLASSIC, Fixed
from crawlguide.strategies.shared.composition import Composition, Top
from crawlguide.strategies.shared.draws import fixed_by_id

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Batch


class Options(Fixed, frozen=True):
    kind: str = "random"


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Composition(Top(), Shuffled(seed), CLASSIC)


@dataclass(frozen=True)
class Shuffled:
    seed: int = 0
    version: str = "shuffled-1"

    def predict(self, batch: Batch) -> F64:
        return fixed_by_id(batch.id, self.seed)
