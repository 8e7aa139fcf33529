"""At most so many URLs of one host in one answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.columns import rank_within

if TYPE_CHECKING:
    from crawlguide.core.crawls import Definition
    from crawlguide.core.tables import Mask
    from crawlguide.core.types import Ask, Batch


@dataclass(frozen=True)
class Diversity:
    max_per_host: int
    name: str = "diversity"
    refusal: str = "pass"

    def keep(self, batch: Batch, ask: Ask) -> Mask:  # noqa: ARG002 - every filter is given the ask
        if not self.max_per_host:
            return np.ones(len(batch), np.bool_)
        return rank_within(batch.host) < self.max_per_host

    def why(self, batch: Batch, ask: Ask) -> str:  # noqa: ARG002
        return f"an answer holds at most {self.max_per_host} URLs of a host" if self.max_per_host else "no bound is set"


def build(definition: Definition) -> Diversity:
    return Diversity(definition.policy.max_per_host)
