"""x"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlguide.core.definition import CLASSIC, Fixed
from crawlguide.strategies.shared.composition import Composition, Top
from crawlguide.strategies.shared.draws import drawn_once

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Batch


@dataclass(frozen=True)
class Shuffled:
    """A number drawn once per URL: the same for the same seed, whoever asks and however often."""

    seed: int = 0
    version: str = "shuffled-1"

    def predict(self, batch: Batch) -> F64:
        return drawn_once(batch.id, self.seed)


# In no order at all, but the same one for the same seed.


class Options(Fixed, frozen=True):
    kind: str = "random"


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Composition(Top(), Shuffled(seed), CLASSIC)
