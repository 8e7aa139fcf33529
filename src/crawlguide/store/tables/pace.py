"""How a host that takes long slows its crawlers down: the longer its fetches take, the further apart they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core.kernels import part
from crawlguide.store.columns import grown
from crawlguide.store.tables.names import Names
from crawlguide.store.tables.politeness_queues import ALONE, Addresses, queue_of
from crawlguide.store.tables.rows import PACE
from crawlguide.store.tables.shelves import key_of

if TYPE_CHECKING:
    from crawlguide.core.tables import F64
    from crawlguide.store.tables.politeness_queues import Sharing
    from crawlguide.store.tables.shelves import Shelf

LONGEST_S = 30.0  # by which slowness alone holds a host back


@part
def paced(delay_s, factor, median_ms):  # type: ignore[no-untyped-def]
    """The delay, or so many times what a fetch takes; NaN: not known. A delay of 0 means no pacing at all."""
    if delay_s <= 0.0 or np.isnan(median_ms):
        return delay_s
    return max(delay_s, min(factor * median_ms / 1_000.0, LONGEST_S))


# Politeness queues of the whole deployment: pace, latency and failures, shared by all tenants and crawls.

IDLE_S = 86_400.0
SWEPT_AT_ONCE = 20_000


class Pace:
    """One row for each politeness queue that was ever seen."""

    def __init__(self, shelf: Shelf, found: Shelf, sharing: Sharing = ALONE) -> None:
        self._shelf, self._groups = shelf, sharing.groups
        self._addresses = Addresses(found, sharing.by_address)
        self.rows = np.zeros(0, PACE)
        self.opens: F64 = np.zeros(0)  # per queue: when it may be fetched again
        self._queues = Names()
        self._swept = 0
        self.touched: set[int] = set()  # changed for other reasons than a crawl's rows

    def __len__(self) -> int:
        return len(self._queues)

    @property
    def end(self) -> int:
        """Every queue's row has a smaller number."""
        return self._queues.end

    def numbers(self) -> list[int]:
        """The rows that are in use."""
        return self._queues.numbers()

    def row(self, host: str) -> int:
        """Hosts of one group, or of one address, have one row."""
        queue = self._queue_of(host)
        known = self._queues.find(queue)
        return self._add(queue) if known is None else known

    def found(self, host: str, address: str) -> int | None:
        """A host is at an address; the row that is its own no more, None where nothing has changed by that."""
        before = self._queues.find(self._queue_of(host))
        changed = self._addresses.found(host, address)
        return before if changed and before != self.row(host) else None

    def merge(self, old: int, new: int, leases: int, crawls: int) -> None:
        """A host has moved from one row to another, which owes from now on what was owed to the host as well."""
        rows = self.rows
        for name in ("last", "next_fetch", "blocked", "backoff"):
            rows[name][new] = max(rows[name][new], rows[name][old])
        rows["delay"][new] = np.fmax(rows["delay"][new], rows["delay"][old])
        limits = [int(rows["limit"][row]) for row in (old, new) if rows["limit"][row]]
        rows["limit"][new] = min(limits, default=0)
        for name, number in (("leases", leases), ("crawls", crawls)):
            rows[name][old] -= number
            rows[name][new] += number
        if not rows["crawls"][old]:  # it was the host's alone: nothing is left there
            rows["delay"][old], rows["limit"][old] = np.nan, 0
        self.opens[new] = max(float(rows["next_fetch"][new]), float(rows["blocked"][new]))
        self.touched.update((old, new))

    def _is_shared(self, queue: int) -> bool:
        return " " in self._queues.names[queue]  # no host has a blank in its name

    def _queue_of(self, host: str) -> str:
        queue = queue_of(host, self._groups) if self._groups else host
        return self._addresses.queue_of(host) if queue == host else queue

    def load(self, rows: np.ndarray[Any, Any]) -> None:
        """Take over queues as they were written down; their names are on the shelf."""
        self._fit(len(rows) - 1)
        self.rows[: len(rows)] = rows
        self.opens[: len(rows)] = np.maximum(rows["next_fetch"], rows["blocked"])
        for key, name in self._shelf.items():
            self._queues.put(name.decode(), int.from_bytes(key, "big"))
        self._queues.close_gaps()
        self._addresses.load()

    def forget_idle(self, at: float) -> None:
        """Of the next few queues those that no crawl knows, that owe no wait and that no operator set are forgotten."""
        start = self._swept if self._swept < self.end else 0
        self._swept = start + SWEPT_AT_ONCE
        rows, opens = self.rows[start : self.end][:SWEPT_AT_ONCE], self.opens[start : self.end][:SWEPT_AT_ONCE]
        idle = (rows["crawls"] == 0) & (rows["leases"] == 0) & (rows["limit"] == 0) & np.isnan(rows["delay"])
        for row in (start + np.flatnonzero(idle & (opens < at - IDLE_S))).tolist():
            if self._queues.names[row]:
                self._shelf.delete(key_of(row))
                self._addresses.forget(self._queues.names[row])
                self._queues.forget(self._queues.names[row])

    def _add(self, queue: str) -> int:
        row = self._queues.add(queue)
        self._shelf.put(key_of(row), queue.encode())
        self.touched.add(row)
        self._fit(row)
        self._reset(row)
        return row

    def _fit(self, row: int) -> None:
        self.rows = grown(self.rows, row + 1)
        self.opens = grown(self.opens, row + 1, -np.inf)

    def ended(self, queue: int, at: float) -> None:
        """A fetch was told; under strict politeness the delay counts from then: it reached the host no later."""
        self.rows["last"][queue] = max(float(self.rows["last"][queue]), at)

    def block(self, queue: int, until: float) -> None:
        """One that hosts share is never let in sooner than another of them wants."""
        if self._is_shared(queue):
            until = max(until, float(self.rows["blocked"][queue]))
        self.rows["blocked"][queue] = until
        self.opens[queue] = max(until, float(self.rows["next_fetch"][queue]))

    def set_delay(self, queue: int, delay_s: float) -> None:
        """Of hosts that share a queue the longest that anybody wants."""
        row = self.rows[queue]
        if self._is_shared(queue) and row["delay"] > delay_s:
            return
        row["delay"] = delay_s
        row["next_fetch"] = row["last"] + delay_s
        self.opens[queue] = max(float(row["next_fetch"]), float(row["blocked"]))

    def set_limit(self, queue: int, limit: int) -> None:
        self.rows["limit"][queue] = limit

    def _reset(self, row: int) -> None:
        self.opens[row] = -np.inf
        self.rows[row] = np.zeros((), PACE)
        for name in ("last", "next_fetch", "blocked"):
            self.rows[name][row] = -np.inf
        for name in ("delay", "median_ms", "median_bytes"):
            self.rows[name][row] = np.nan
