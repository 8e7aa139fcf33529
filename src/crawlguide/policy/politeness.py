"""Only what a host may be asked for soon: each further URL of a host waits one delay longer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import F64 as FLOATS
from crawlguide.core.kernels import I64 as NUMBERS
from crawlguide.core.kernels import kernel, nothing, one_f64

if TYPE_CHECKING:
    from crawlguide.core.crawls import Definition
    from crawlguide.core.types import F64, Ask, Batch, Hosts, Mask


@dataclass(frozen=True)
class Politeness:
    delay_s: float
    horizon_s: float
    strict: bool
    name: str = "politeness"
    refusal: str = "defer"

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        soon: Mask = self.wait(batch, ask) <= min(self.horizon_s, ask.budget.timeout_ms / 1_000)
        return soon

    def wait(self, batch: Batch, ask: Ask) -> F64:
        """Seconds until each row's slot, if all rows of its host before it are taken."""
        hosts = batch.hosts
        delay = np.where(np.isnan(hosts.crawl_delay), self.delay_s, hosts.crawl_delay)
        first = np.maximum(hosts.next_fetch, hosts.last_fetch + delay) - ask.at
        waits = np.empty(len(batch))
        line_up(batch.host, first, delay, self._room(hosts), 1.0 + self.horizon_s, waits)
        return waits

    def _room(self, hosts: Hosts) -> F64:
        """How many more URLs each host may give out at once."""
        most = 1.0 if self.strict else np.inf
        if not self.strict and not hosts.limit.any():
            return np.full(len(hosts.name), most)
        limit = np.where(hosts.limit > 0, hosts.limit, np.inf)
        return np.minimum(limit, most) - hosts.leases


@kernel(nothing(NUMBERS, FLOATS, FLOATS, FLOATS, one_f64, FLOATS))
def line_up(host, first, delay, room, too_late, wait):  # type: ignore[no-untyped-def]
    """Row k of a host waits until the host's first slot and k delays more, or too long where there is no room."""
    given = np.zeros(len(first))
    for row in range(len(host)):
        mine = host[row]
        wait[row] = max(first[mine], 0.0) + given[mine] * delay[mine]
        if given[mine] >= room[mine]:
            wait[row] = max(wait[row], too_late)
        given[mine] += 1


def build(definition: Definition) -> Politeness:
    policy = definition.policy
    return Politeness(policy.default_delay_s, policy.horizon_s, policy.strict)
