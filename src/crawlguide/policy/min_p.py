"""Only URLs with at least the chance of being relevant that the crawl's price allows; the others wait, and may rise.

Seeds are let through: a person named them, and without them nothing could be learned. So is what a person gave a
priority at least as high, since `p` is that priority then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from crawlguide.core.definition import Definition
    from crawlguide.core.tables import Mask
    from crawlguide.core.types import Ask, Batch
    from crawlguide.policy import Services


@dataclass(frozen=True)
class MinP:
    label: ClassVar = "chance too low"

    min_p: float
    name: str = "min_p"
    refusal: str = "pass"

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        enough: Mask = (batch.value >= self.min_p) | (batch.depth == 0)
        return enough

    def why(self, batch: Batch, ask: Ask) -> str:
        if batch.value[0] >= self.min_p:
            return f"its p of {batch.value[0]:.3f} reaches policy.min_p, which is {self.min_p:g}"
        if batch.depth[0] == 0:
            return "policy.min_p does not hold for seeds"
        return f"its p of {batch.value[0]:.3f} is below policy.min_p, which is {self.min_p:g}"

    def connected(self, services: Services) -> MinP | None:
        return self if self.min_p else None


def build(definition: Definition) -> MinP:
    return MinP(definition.policy.min_p)
