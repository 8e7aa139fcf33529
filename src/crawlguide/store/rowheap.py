"""A heap of rows by what stands in them: the worst first, or the earliest due first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.store.columns import grown
from crawlguide.store.kernels import rowheaps as kernels

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I32


class RowHeap:
    """One of the two heaps over a table; `place` is the column they share."""

    def __init__(self, table: np.ndarray[Any, Any], place: I32, order: int) -> None:
        self._table, self._place, self._order = table, place, order
        self._rows: I32 = np.zeros(0, np.int32)
        self._size = np.zeros(1, np.int64)

    def __len__(self) -> int:
        return int(self._size[0])

    def push(self, rows: I32) -> None:
        """Add rows; one that is in either heap already stays where it is."""
        self._rows = grown(self._rows, len(self) + len(rows))
        kernels.push(self._table, self._order, self._rows, self._size, self._place, rows)

    def remove(self, rows: I32) -> None:
        kernels.remove(self._table, self._order, self._rows, self._size, self._place, rows)

    def rank(self, rows: I32, priority: F64) -> None:
        """Write new priorities into the rows, wherever they are."""
        kernels.rank(self._table, self._order, self._rows, self._size, self._place, rows, priority)

    def first(self) -> int | None:
        return int(self._rows[0]) if len(self) else None

    def due(self, at: float, most: int) -> I32:
        """Up to `most` rows that are due by `at`, in any order."""
        found = np.empty(most, np.int32)
        count = kernels.due_by(self._table, self._rows, self._size, at, found)
        return found[:count]
