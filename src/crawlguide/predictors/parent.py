"""The relevance of the best page that links here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Batch


@dataclass(frozen=True)
class Parent:
    version: str = "parent-1"

    def predict(self, batch: Batch) -> F64:
        return batch.parent_best
