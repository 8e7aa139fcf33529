"""Take the first rows as they come: gather has put the best first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.types import Sample

if TYPE_CHECKING:
    from crawlguide.core.types import Ask, Batch


@dataclass(frozen=True)
class Top:
    def sample(self, batch: Batch, ask: Ask, limit: int) -> Sample:  # noqa: ARG002 - a sampler may look at the ask
        count = min(len(batch), limit)
        return Sample(np.arange(count), batch.arm[:count], np.ones(count))
