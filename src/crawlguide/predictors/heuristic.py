"""The microsecond judgement that needs no model: pages linked from good pages, on good and reliable hosts, near home.

    value = (relevant parents + host's relevance + 1/2) / (parents + 3) · (1 − failing) · depth discount
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.types import F64, Batch

DISCOUNT_PER_LINK = 0.98


@dataclass(frozen=True)
class Heuristic:
    version: str = "heuristic-1"

    def predict(self, batch: Batch) -> F64:
        hosts = batch.hosts
        tries = hosts.pages + hosts.failures
        reliable = 1.0 - hosts.failures / (tries + 2.0)
        known = np.where(hosts.judged > 0, hosts.relevance, 0.5)
        share = (batch.parent_sum + known[batch.host] + 0.5) / (batch.parents + 3.0)
        value: F64 = share * reliable[batch.host] * DISCOUNT_PER_LINK ** np.minimum(batch.depth, 50)
        return value
