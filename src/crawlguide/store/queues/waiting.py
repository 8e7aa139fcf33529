"""What waits to be fetched: the best of every host, the worst (first to be evicted), and what is due later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.store.columns import grown
from crawlguide.store.queues.row_heap import LATER, WORST, RowHeap
from crawlguide.store.queues.tiers import Tiers

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I32, I64

WOKEN_AT_ONCE = 1_000


class Queues:
    """The queues of one frontier. A row waits for its turn (`waiting`), or until it is due (`later`), or not at all.

    Rows that wait for their turn are in `worst` too, for eviction. A leased row leaves `waiting` alone and stays in
    `worst` until it is done, so that leasing costs less; whoever evicts passes over it.
    """

    def __init__(self, table: np.ndarray[Any, Any]) -> None:
        self._table = table
        self._place: I32 = np.zeros(0, np.int32)  # in `worst` or `later`
        self.waiting = Tiers()
        self.worst = RowHeap(table, self._place, WORST)
        self.later = RowHeap(table, self._place, LATER)
        self.fit(0, 1)

    def fit(self, rows: int, hosts: int) -> None:
        self.waiting.fit(rows, hosts)
        grown(self._place, rows, -1)

    def push(self, rows: I32, hosts: I32, priority: F64, sequence: I64) -> None:
        self.waiting.push(rows, hosts, priority, sequence)
        self.worst.push(rows)

    def load(self, rows: I32) -> None:
        """Queue rows as their records say: for their turn, or until they are due. Nothing is queued yet."""
        has_turn = np.isnan(self._table["due"][rows])
        self.later.push(rows[~has_turn])
        rows = rows[has_turn]
        self.waiting.load(rows, *(self._table[name][rows] for name in ("host", "priority", "sequence")))
        self.worst.push(rows)

    def remove(self, rows: I32) -> None:
        """Rows that do not come back."""
        self.waiting.remove(rows)
        self.worst.remove(rows)
        self.later.remove(rows)

    def rank(self, rows: I32, priority: F64) -> None:
        """New priorities, written into the rows; those that wait find their new place."""
        self.waiting.rekey(rows, priority)
        self.worst.rank(rows, priority)

    def postpone(self, rows: I32, due: F64) -> None:
        """Rows wait until they are due instead of for their turn; of two instants for one row the sooner counts."""
        self.later.remove(rows[due < self._table["due"][rows]])
        fresh = np.isnan(self._table["due"][rows])
        self.worst.remove(rows[fresh])
        self._table["due"][rows[fresh]] = due[fresh]
        self.later.push(rows[fresh])

    def take_due(self, at: float, most: int = WOKEN_AT_ONCE) -> I32:
        """Take out rows that are due by now, a bounded number."""
        first = self.next_due()
        if first is None or first > at:
            return np.zeros(0, np.int32)
        rows = np.sort(self.later.due(at, most))
        self.later.remove(rows)
        return rows

    def next_due(self) -> float | None:
        first = self.later.first()
        return None if first is None else float(self._table["due"][first])
