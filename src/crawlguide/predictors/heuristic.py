"""The microsecond judgement that needs no model: pages linked from good pages, on good and reliable hosts, near home.

value = (Σ relevance of parents + mean relevance of the host + 1/2) / (parents + 3) · (1 − failing) · 0.98^depth
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import F64 as FLOATS
from crawlguide.core.kernels import I64 as NUMBERS
from crawlguide.core.kernels import kernel, nothing

if TYPE_CHECKING:
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Batch


@dataclass(frozen=True)
class Heuristic:
    version: str = "heuristic-1"

    def predict(self, batch: Batch) -> F64:
        value, hosts = np.empty(len(batch)), batch.hosts
        judge(
            batch.parents, batch.parent_sum, batch.depth, batch.host,
            hosts.pages, hosts.failures, hosts.judged, hosts.relevance_sum, value,
        )  # fmt: skip
        return value


@kernel(nothing(FLOATS, FLOATS, FLOATS, NUMBERS, FLOATS, FLOATS, FLOATS, FLOATS, FLOATS))
def judge(parents, parent_sum, depth, host, pages, failures, judged, relevance_sum, value):  # type: ignore[no-untyped-def]
    for row in range(len(value)):
        mine = host[row]
        reliable = 1.0 - failures[mine] / (pages[mine] + failures[mine] + 2.0)
        known = (relevance_sum[mine] + 0.5) / (judged[mine] + 1.0)
        share = (parent_sum[row] + known + 0.5) / (parents[row] + 3.0)
        value[row] = share * reliable * 0.98 ** min(depth[row], 50.0)
