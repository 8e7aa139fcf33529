"""A strategy is a sampler, a predictor and weights; most use the plain sampler `Top`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.types import Sample

if TYPE_CHECKING:
    from crawlguide.core.definition import Weights
    from crawlguide.core.protocols import Predictor, Sampler
    from crawlguide.core.types import Ask, Batch


@dataclass(frozen=True)
class Composition:
    """Which rows are looked at, what each is worth, and how much each score term weighs unless the crawl says so."""

    sampler: Sampler
    predictor: Predictor
    weights: Weights


@dataclass(frozen=True)
class Top:
    """The first rows as they come: gather has put the best first."""

    def sample(self, batch: Batch, ask: Ask, limit: int) -> Sample:
        count = min(len(batch), limit)
        return Sample(np.arange(count), batch.arm[:count], np.ones(count))
