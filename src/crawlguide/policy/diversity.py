"""At most so many URLs of one host, and of one registrable domain, in one answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crawlguide.core.columns import rank_within

if TYPE_CHECKING:
    from crawlguide.core.definition import Definition
    from crawlguide.core.tables import Mask
    from crawlguide.core.types import Ask, Batch


@dataclass(frozen=True)
class Diversity:
    label: ClassVar = "enough of this host"

    max_per_host: int
    max_per_domain: int = 0
    name: str = "diversity"
    refusal: str = "pass"

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        keep = np.ones(len(batch), np.bool_)
        if self.max_per_host:
            keep = rank_within(batch.host) < self.max_per_host
        if self.max_per_domain:  # rows over the bound of their host do not count for their domain
            rows = np.flatnonzero(keep)
            keep[rows] = rank_within(batch.hosts.domain[batch.host[rows]].astype(np.int64)) < self.max_per_domain
        return keep

    def why(self, batch: Batch, ask: Ask) -> str:
        bounds = (self.max_per_host, "host"), (self.max_per_domain, "registrable domain")
        said = [f"an answer holds at most {most} URLs of a {whole}" for most, whole in bounds if most]
        return ", ".join(said) or "no bound is set"


def build(definition: Definition) -> Diversity:
    return Diversity(definition.policy.max_per_host, definition.policy.max_per_domain)
