"""Predictors made of predictors; they wear the same coat."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.errors import ModelUnavailable

if TYPE_CHECKING:
    from crawlguide.core.protocols import Predictor
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Batch


@dataclass
class Fallback:
    """The first predictor, or the second while the first is unavailable or talks nonsense."""

    first: Predictor
    second: Predictor
    stood_in: bool = field(default=False, init=False)

    @property
    def version(self) -> str:
        return self.second.version if self.stood_in else self.first.version

    def predict(self, batch: Batch) -> F64:
        try:
            values = self.first.predict(batch)
            self.stood_in = not bool(np.isfinite(values).all())
        except ModelUnavailable:
            self.stood_in = True
        return self.second.predict(batch) if self.stood_in else values
