"""What waits to be fetched: the best of every host, the worst (first to go when there is no room), and the later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.store.columns import grown
from crawlguide.store.queues import tiers
from crawlguide.store.queues.row_heap import LATER, WORST, RowHeap
from crawlguide.store.queues.tiers import Tiers

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I32, I64

SHUT_AT_ONCE = 1_000


class Queues:
    """Rows of URLs by host and priority. A row waits for its turn among the best, or for its hour, or not at all.

    A row that is taken out for a crawler stays among the worst until it is done, so that giving it out costs less;
    whoever evicts passes over it.
    """

    def __init__(self, table: np.ndarray[Any, Any]) -> None:
        self._table = table
        self._best = Tiers()
        self._place: I32 = np.zeros(0, np.int32)
        self._worst = RowHeap(table, self._place, WORST)
        self._later = RowHeap(table, self._place, LATER)
        self._given: I32 = np.zeros(0, np.int32)  # zeros: scratch of a walk
        self.fit(0, 1)

    def fit(self, rows: int, hosts: int) -> None:
        self._best.fit(rows, hosts)
        grown(self._place, rows, -1)
        self._given = grown(self._given, hosts, 0)

    def push(self, rows: I32, hosts: I32, priority: F64, sequence: I64) -> None:
        self._best.push(rows, hosts, priority, sequence)
        self._worst.push(rows)

    def take_out(self, rows: I32) -> None:
        """Rows go to a crawler and may come back."""
        self._best.remove(rows)

    def remove(self, rows: I32) -> None:
        """Rows do not come back."""
        self._best.remove(rows)
        self._worst.remove(rows)
        self._later.remove(rows)

    def rank(self, rows: I32, priority: F64) -> None:
        """New priorities, written into the rows; those that wait find their new place."""
        self._best.rekey(rows, priority)
        self._worst.rank(rows, priority)

    def postpone(self, rows: I32, due: F64) -> None:
        """Rows that wait for their hour instead of their turn; of two hours for one row the sooner counts."""
        self._later.remove(rows[due < self._table["due"][rows]])
        fresh = np.isnan(self._table["due"][rows])
        self._worst.remove(rows[fresh])
        self._table["due"][rows[fresh]] = due[fresh]
        self._later.push(rows[fresh])

    def due(self, at: float, most: int = 1_000) -> I32:
        """Take out rows whose hour has come."""
        first = self.next_due()
        if first is None or first > at:
            return np.zeros(0, np.int32)
        rows = np.sort(self._later.due(at, most))
        self._later.remove(rows)
        return rows

    def load(self, rows: I32) -> None:
        """Queue rows as their records say: for their hour, or for their turn. Nothing is queued yet."""
        turn = np.isnan(self._table["due"][rows])
        self._later.push(rows[~turn])
        rows = rows[turn]
        self._best.load(rows, *(self._table[name][rows] for name in ("host", "priority", "sequence")))
        self._worst.push(rows)

    def next_due(self) -> float | None:
        first = self._later.first()
        return None if first is None else float(self._table["due"][first])

    def best(self, limit: int, per_host: int, until: float, opens: F64, pace_row: I32) -> I32:
        """The best rows of hosts that open by `until`, best first. Hosts found shut are set aside until they open."""
        self._best.open_until(until, SHUT_AT_ONCE)
        while True:
            rows, shut = self._walk(limit, per_host, until, opens, pace_row)
            if not len(shut):
                return rows
            self._best.shut(shut, opens[pace_row[shut]])
            if len(rows) == limit or len(shut) < SHUT_AT_ONCE:
                return rows

    def _walk(self, limit: int, per_host: int, until: float, opens: F64, pace_row: I32) -> tuple[I32, I32]:
        found, shut = np.empty(limit, np.int32), np.empty(SHUT_AT_ONCE, np.int32)
        shut_count, inner, outer = np.zeros(1, np.int64), self._best.inner, self._best.outer
        count = tiers.best(
            inner.slots, inner.groups, inner.items, outer.slots, outer.groups,
            opens, pace_row, until, per_host, self._given, found, shut, shut_count,
        )  # fmt: skip
        return found[:count], shut[: int(shut_count[0])]

    def of_host(self, host: int, most: int) -> I32:
        """Up to `most` good rows of one host."""
        return self._best.inner.top(host, most)

    @property
    def sizes(self) -> Any:
        """How many rows of each host wait for their turn."""
        return self._best.inner.groups["size"]

    def waiting(self, host: int) -> int:
        return self._best.inner.size(host)

    def worst(self) -> int | None:
        """The lowest-ranked row, which may be with a crawler; None if all wait for their hour."""
        return self._worst.first()

    def pass_over(self, rows: I32) -> None:
        """Rows that must not go now leave the worst; `push` brings them back when they wait again."""
        self._worst.remove(rows)

    def worst_of_host(self, host: int) -> int:
        """The lowest-ranked row of one host, found among the lower half of its heap."""
        heap = self._best.inner
        start, size = int(heap.groups["start"][host]), heap.size(host)
        leaves = heap.slots[start + size // 2 : start + size]
        lowest = leaves[leaves["key"] == leaves["key"].min()]
        return int(lowest["item"][lowest["tie"].argmax()])

    def shut(self, hosts: I32, until: F64) -> None:
        self._best.shut(hosts, until)

    def open(self, hosts: I32) -> None:
        self._best.open(hosts)

    def next_opening(self) -> float | None:
        return self._best.next_opening()

    def any_open(self) -> bool:
        return self._best.any_open()
