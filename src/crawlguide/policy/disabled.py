"""A filter that the crawl's definition has turned off: it keeps everything, and says why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import Mask
    from crawlguide.core.types import Ask, Batch


@dataclass(frozen=True)
class Disabled:
    label: ClassVar = ""  # it refuses nothing

    name: str
    because: str
    refusal: str = "pass"

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        return np.ones(len(batch), np.bool_)

    def why(self, batch: Batch, ask: Ask) -> str:
        return self.because
