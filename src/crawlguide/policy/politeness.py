"""Only URLs whose host may be fetched from soon: each further URL of a host waits one delay longer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crawlguide.core.kernels import f64s, flag, i64s, kernel, nothing, one_f64
from crawlguide.store.tables.politeness import paced

if TYPE_CHECKING:
    from crawlguide.core.definition import Definition
    from crawlguide.core.tables import F64, Mask
    from crawlguide.core.types import Ask, Batch, Hosts


@dataclass(frozen=True)
class Politeness:
    label: ClassVar = "host rests"
    hold_back_s: ClassVar = 0.0

    delay_s: float
    horizon_s: float
    strict: bool
    factor: float = 0.0
    max_leases: int = 0  # of a host at once, 0: no bound but its own
    name: str = "politeness"
    refusal: str = "defer"

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        soon: Mask = self.wait(batch, ask) <= min(self.horizon_s, ask.budget.timeout_ms / 1_000)
        return soon

    def wait(self, batch: Batch, ask: Ask) -> F64:
        """Seconds until each row's slot, if all rows of its host before it are taken."""
        hosts, waits = batch.hosts, np.empty(len(batch))
        line_up(
            batch.host, hosts.next_fetch, hosts.last_fetch, hosts.crawl_delay, hosts.leases, self.limits(hosts),
            hosts.median_ms, ask.at, self.delay_s, self.factor, self.horizon_s, self.strict, waits,
        )  # fmt: skip
        return waits

    def limits(self, hosts: Hosts) -> F64:
        """Leases of each host at once: the operator's bound or the crawl's, whichever is tighter; 0: any number."""
        if not self.max_leases:
            return hosts.limit
        return np.where(hosts.limit > 0, np.minimum(hosts.limit, self.max_leases), self.max_leases)

    def why(self, batch: Batch, ask: Ask) -> str:
        wait = float(self.wait(batch, ask)[0])
        if wait > self.horizon_s:
            return f"its host may be asked again in {wait:.1f} s, and answers look {self.horizon_s:g} s ahead"
        slow = self.factor * float(batch.hosts.median_ms[0]) / 1_000
        why = f", since a fetch takes {batch.hosts.median_ms[0]:.0f} ms there" if slow > self.delay_s > 0 else ""
        return "its host may be asked now" if wait <= 0 else f"its host may be asked in {wait:.1f} s{why}"


@kernel(
    nothing(
        i64s, f64s, f64s, f64s, f64s, f64s, f64s, one_f64, one_f64, one_f64, one_f64, flag, f64s
    )
)  # fmt: skip
def line_up(  # type: ignore[no-untyped-def]
    host, next_fetch, last_fetch, crawl_delay, leases, limit, median_ms, at, default, factor, horizon, strict, wait
):  # fmt: skip
    """Row k of a host waits for the host's first slot and k delays more; where there is no room, beyond the horizon."""
    taken = np.zeros(len(leases))
    for row in range(len(host)):
        mine = host[row]
        delay = paced(default, crawl_delay[mine], factor, median_ms[mine])
        first = max(next_fetch[mine], last_fetch[mine] + delay) - at
        wait[row] = max(first, 0.0) + taken[mine] * delay
        held = leases[mine] + taken[mine]
        if (strict and held >= 1) or (limit[mine] > 0 and held >= limit[mine]):
            wait[row] = max(wait[row], 1.0 + horizon)
        taken[mine] += 1


def build(definition: Definition) -> Politeness:
    policy = definition.policy
    bound = policy.max_leases_per_host
    return Politeness(policy.default_delay_s, policy.horizon_s, policy.strict, policy.delay_factor, bound)
