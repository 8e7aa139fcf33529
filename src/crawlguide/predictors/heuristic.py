"""The microsecond judgement that needs no model: pages linked from good pages, on good and reliable hosts, near home.

value = (relevant parents + host's relevance + 1/2) / (parents + 3) · (1 − failing) · depth discount
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.types import F64, Batch

DISCOUNTS = 0.98 ** np.arange(50)  # per link from the nearest seed


@dataclass(frozen=True)
class Heuristic:
    version: str = "heuristic-1"

    def predict(self, batch: Batch) -> F64:
        hosts = batch.hosts
        tries = hosts.pages + hosts.failures
        reliable = 1.0 - hosts.failures / (tries + 2.0)
        known = (hosts.relevance_sum + 0.5) / (hosts.judged + 1.0)
        share = (batch.parent_sum + known.take(batch.host) + 0.5) / (batch.parents + 3.0)
        value: F64 = share * reliable.take(batch.host) * DISCOUNTS.take(batch.depth, mode="clip")
        return value
