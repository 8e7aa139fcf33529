"""No URL twice: neither twice in one answer nor again before it is due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.crawls import Definition
    from crawlguide.core.types import Ask, Batch, Mask


@dataclass(frozen=True)
class Seen:
    name: str = "seen"

    def keep(self, batch: Batch, ask: Ask) -> Mask:  # noqa: ARG002 - every filter is given the ask
        _, first = np.unique(batch.id, return_index=True)
        keep = np.zeros(len(batch), np.bool_)
        keep[first] = True
        return keep


def build(definition: Definition) -> Seen:  # noqa: ARG001 - every filter is built from the definition
    return Seen()
