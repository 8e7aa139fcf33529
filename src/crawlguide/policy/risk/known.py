"""Judgements that were made before, by id; bounded: of two that claim one place the older is forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import F32, U64, Mask


class Known:
    def __init__(self, places: int = 1 << 16) -> None:
        self._ids, self._risk = np.zeros(places, np.uint64), np.zeros(places, np.float32)
        self._last = np.uint64(places - 1)

    def find(self, ids: U64) -> tuple[F32, Mask]:
        """The risk of each id, and whether it is known."""
        places = (ids & self._last).astype(np.intp)
        return self._risk[places], self._ids[places] == ids

    def put(self, ids: U64, risk: F32) -> None:
        places = (ids & self._last).astype(np.intp)
        self._ids[places], self._risk[places] = ids, risk
