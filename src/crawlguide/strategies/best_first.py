"""Links of the most relevant page first."""

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
    kind: str = "best-first"


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Composition(Top(), Parent(), CLASSIC)


@dataclass(frozen=True)
class Parent:
    version: str = "parent-1"

    def predict(self, batch: Batch) -> F64:
        return batch.parent_best
