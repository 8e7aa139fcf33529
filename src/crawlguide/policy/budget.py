"""Never more URLs, bytes or time than the crawler said it can take; one huge file does not starve the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.crawls import Definition
    from crawlguide.core.tables import F64, Mask
    from crawlguide.core.types import Ask, Batch


@dataclass(frozen=True)
class Budget:
    name: str = "budget"
    refusal: str = "pass"

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        """Row by row, best first: what fits in what is left is taken, what does not is passed over."""
        budget = ask.budget
        room = float("inf") if budget.max_bytes is None else float(budget.max_bytes)
        keep = np.zeros(len(batch), np.bool_)
        fill(
            keep, batch.estimated_bytes, batch.estimated_ms, budget.max_urls, room, budget.timeout_ms * ask.concurrency
        )
        return keep

    def why(self, batch: Batch, ask: Ask) -> str:
        size, ms = float(batch.estimated_bytes[0]), float(batch.estimated_ms[0])
        if ask.budget.max_bytes is not None and size > ask.budget.max_bytes:
            return f"it may weigh {size:.0f} bytes, budget.max_bytes is {ask.budget.max_bytes}"
        return f"it may take {ms:.0f} ms and weigh {size:.0f} bytes, which fits"


def fill(keep: Mask, size: F64, ms: F64, urls: int, room: float, time_ms: float) -> None:
    top = slice(0, urls)
    if size[top].sum() <= room and ms[top].sum() <= time_ms:
        keep[top] = True
        return
    for row, (needs_bytes, needs_ms) in enumerate(zip(size.tolist(), ms.tolist(), strict=True)):
        if needs_bytes <= room and needs_ms <= time_ms:
            keep[row] = True
            room, time_ms, urls = room - needs_bytes, time_ms - needs_ms, urls - 1
            if not urls:
                return


def build(definition: Definition) -> Budget:  # noqa: ARG001 - every filter is built from the definition
    return Budget()
