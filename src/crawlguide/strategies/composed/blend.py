"""Predictors side by side: a row is worth the weighted mean of their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from msgspec import Meta

from crawlguide.core.definition import Fixed
from crawlguide.strategies.composed.guard import Composite, Opinion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.types import Batch
    from crawlguide.strategies.composed.guard import Member, Purpose


class Stage(Fixed, frozen=True):
    """The option of each member beside its own."""

    weight: Annotated[float, Meta(gt=0, le=1_000, description="a number above 0, up to 1000")] = 1.0


@dataclass(frozen=True)
class Blend(Composite):
    weights: tuple[float, ...]

    @property
    def version(self) -> str:
        return "|".join(member.version for member in self.members)

    def judge(self, batch: Batch, purpose: Purpose) -> Opinion | None:
        """The mean of those that work; the others count nothing."""
        opinions = [member.judge(batch, purpose) for member in self.members]
        weighted = [(weight, one) for weight, one in zip(self.weights, opinions, strict=True) if one is not None]
        if not weighted:
            return None
        total = sum(weight for weight, _ in weighted)
        value = sum(weight / total * one.value for weight, one in weighted)
        bonuses = [weight / total * one.exploration for weight, one in weighted if one.exploration is not None]
        return Opinion(np.asarray(value), np.sum(bonuses, axis=0) if bonuses else None)


def build(members: Sequence[Member], stages: Sequence[Stage]) -> Blend:
    return Blend(tuple(members), tuple(stage.weight for stage in stages))
