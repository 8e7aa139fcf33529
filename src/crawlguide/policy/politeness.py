"""Only what a host may be asked for soon: each further URL of a host waits one delay longer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.columns import rank_within

if TYPE_CHECKING:
    from crawlguide.core.crawls import Definition
    from crawlguide.core.types import F64, Ask, Batch, Mask


@dataclass(frozen=True)
class Politeness:
    delay_s: float
    horizon_s: float
    strict: bool
    name: str = "politeness"

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        soon: Mask = self.wait(batch, ask) <= min(self.horizon_s, ask.budget.timeout_ms / 1_000)
        return soon

    def wait(self, batch: Batch, ask: Ask) -> F64:
        """Seconds until each row's slot, if all rows of its host before it are taken."""
        hosts = batch.hosts
        delay = np.where(np.isnan(hosts.crawl_delay), self.delay_s, hosts.crawl_delay)
        first = np.maximum(np.maximum(hosts.next_fetch, hosts.last_fetch + delay) - ask.at, 0.0)
        if not delay.any() and not first.any() and not self.strict and not hosts.limit.any():
            return np.zeros(len(batch))
        place = rank_within(batch.host)
        slot: F64 = first[batch.host] + place * delay[batch.host]
        return np.where(place >= self._room(batch)[batch.host], np.maximum(slot, 1.0 + self.horizon_s), slot)

    def _room(self, batch: Batch) -> F64:
        """How many more URLs each host may give out at once."""
        hosts = batch.hosts
        limit = np.where(hosts.limit > 0, hosts.limit, np.inf)
        return np.maximum(np.minimum(limit, 1.0 if self.strict else np.inf) - hosts.leases, 0.0)


def build(definition: Definition) -> Politeness:
    policy = definition.policy
    return Politeness(policy.default_delay_s, policy.horizon_s, policy.strict)
