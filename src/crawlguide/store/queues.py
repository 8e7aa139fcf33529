"""What waits to be fetched: the best of every host, the worst (first to go when there is no room), and the later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.store.columns import grown
from crawlguide.store.heaps import Heaps
from crawlguide.store.kernels import walk
from crawlguide.store.tiers import Tiers

if TYPE_CHECKING:
    from crawlguide.core.types import F64, I32, I64

SHUT_AT_ONCE = 1_000


class Queues:
    """Rows of URLs by host and priority. A row waits in the best and the worst tiers, or for its hour, or nowhere."""

    def __init__(self) -> None:
        self._best = Tiers()
        self._worst = Tiers()
        self._later = Heaps()
        self._given: I32 = np.zeros(0, np.int32)  # zeros: scratch of a walk
        self._anywhere: I32 = np.zeros(0, np.int32)  # zeros: every host opens as the first one does
        self.fit(0, 1)

    def fit(self, rows: int, hosts: int) -> None:
        self._best.fit(rows, hosts)
        self._worst.fit(rows, hosts)
        self._later.fit(rows, 1)
        self._given, self._anywhere = grown(self._given, hosts, 0), grown(self._anywhere, hosts, 0)

    def push(self, rows: I32, hosts: I32, priority: F64, sequence: I64) -> None:
        self._best.push(rows, hosts, priority, sequence)
        self._worst.push(rows, hosts, -priority, -sequence)

    def remove(self, rows: I32) -> None:
        self._best.remove(rows)
        self._worst.remove(rows)
        self._later.remove(rows)

    def rank(self, rows: I32, priority: F64) -> None:
        """New priorities for rows that wait; others are left alone."""
        self._best.rekey(rows, priority)
        self._worst.rekey(rows, -priority)

    def postpone(self, rows: I32, due: F64) -> None:
        """Rows that wait for their hour instead of their turn."""
        self._later.push(rows, np.zeros(len(rows), np.int32), -due, rows.astype(np.int64))

    def due(self, at: float, most: int = 1_000) -> I32:
        """Take out rows whose hour has come."""
        rows = self._later.not_below(0, -at, most)
        if len(rows):
            rows = np.sort(rows)
            self._later.remove(rows)
        return rows

    def next_due(self) -> float | None:
        if not self._later.sizes[:1].any():
            return None
        return -float(self._later.key[self._later.slots[self._later.starts[0]]])

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

    def of_host(self, host: int, most: int) -> I32:
        """Up to `most` good rows of one host: the top of its heap."""
        heap = self._best.inner
        size = min(int(heap.sizes[host]), most)
        return heap.slots[heap.starts[host] : heap.starts[host] + size].copy()

    def worst(self, count: int) -> I32:
        """The lowest-ranked rows of all hosts, worst first."""
        return walked(self._worst, count, count, self._given, 0.0, np.zeros(1), self._anywhere, 1)[0]

    def worst_of_host(self, host: int) -> int:
        """The lowest-ranked row of one host, which must have one."""
        return int(self._worst.inner.slots[self._worst.inner.starts[host]])

    def waiting(self, host: int) -> int:
        return int(self._best.inner.sizes[host])

    def shut(self, hosts: I32, until: F64) -> None:
        self._best.shut(hosts, until)

    def open(self, hosts: I32) -> None:
        self._best.open(hosts)

    def next_opening(self) -> float | None:
        return self._best.next_opening()

    def any_open(self) -> bool:
        return self._best.head() >= 0

    def _walk(self, limit: int, per_host: int, until: float, opens: F64, pace_row: I32) -> tuple[I32, I32]:
        return walked(self._best, limit, per_host, self._given, until, opens, pace_row, SHUT_AT_ONCE)


def walked(
    tiers: Tiers, limit: int, per_host: int, given: I32, until: float, opens: F64, pace_row: I32, most_shut: int
) -> tuple[I32, I32]:
    found, shut = np.empty(limit, np.int32), np.empty(most_shut, np.int32)
    shut_count = np.zeros(1, np.int64)
    inner, outer = tiers.inner, tiers.outer
    count = walk.best(
        found, shut, shut_count, per_host, given, until, opens, pace_row,
        inner.key, inner.tie, inner.group, inner.slots, inner.starts, inner.sizes,
        outer.key, outer.tie, outer.slots, outer.starts, outer.sizes,
    )  # fmt: skip
    return found[:count], shut[: int(shut_count[0])]
