"""Take the first rows as they come: gather has put the best first."""

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
class Top:
    def sample(self, batch: Batch, ask: Ask, limit: int) -> Sample:
        count = min(len(batch), limit)
        return Sample(np.arange(count), batch.arm[:count], np.ones(count))


# x


@dataclass(frozen=True)
class Composition:
    """Which rows, which value, and how much each term weighs unless the crawl says otherwise."""

    sampler: Sampler
    predictor: Predictor
    weights: Weights
