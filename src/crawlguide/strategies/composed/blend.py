"""Predictors side by side: a row is worth the weighted mean of what they say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from msgspec import Meta

from crawlguide.core.definition import Fixed
from crawlguide.strategies.composed.guard import Opinion
from crawlguide.strategies.composed.several import Several

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.types import Batch
    from crawlguide.strategies.composed.guard import Member


class Stage(Fixed, frozen=True):
    """What each says beside its kind and its options."""

    weight: Annotated[float, Meta(gt=0, le=1_000, description="a number above 0, up to 1000")] = 1.0


@dataclass(frozen=True)
class Blend(Several):
    weights: tuple[float, ...]

    @property
    def version(self) -> str:
        return "|".join(member.version for member in self.members)

    def judge(self, batch: Batch) -> Opinion | None:
        return self._mixed([member.judge(batch) for member in self.members])

    def rest(self, batch: Batch) -> Opinion | None:
        return self._mixed([member.rest(batch) for member in self.members])

    def _mixed(self, said: list[Opinion | None]) -> Opinion | None:
        """Of those that have something to say; the others count nothing."""
        heard = [(opinion, weight) for opinion, weight in zip(said, self.weights, strict=True) if opinion is not None]
        if not heard:
            return None
        whole = sum(weight for _, weight in heard)
        shares = [weight / whole for _, weight in heard]
        value = sum(share * opinion.value for share, (opinion, _) in zip(shares, heard, strict=True))
        hopes = [
            share * one.exploration
            for share, (one, _) in zip(shares, heard, strict=True)
            if one.exploration is not None
        ]
        return Opinion(np.asarray(value), np.sum(hopes, axis=0) if hopes else None)


def build(members: Sequence[Member], stages: Sequence[Stage]) -> Blend:
    return Blend(tuple(members), tuple(stage.weight for stage in stages))
