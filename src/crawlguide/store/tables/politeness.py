"""Politeness queues of the whole deployment: pace, latency and failures, shared by all tenants and crawls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core.kernels import part
from crawlguide.store.columns import Names, grown
from crawlguide.store.tables.keyspace import key_of
from crawlguide.store.tables.rows import POLITENESS
from crawlguide.store.tables.sharing import ALONE, Addresses, queue_of

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I32
    from crawlguide.store.tables.keyspace import Keyspace
    from crawlguide.store.tables.sharing import Sharing

IDLE_S = 86_400.0
DELAY_KEPT_S = 7 * 86_400.0  # a delay that robots.txt asked for: by then the file has to be read again
SWEPT_AT_ONCE = 20_000
LONGEST_S = 30.0  # by which slowness alone holds a host back


class PolitenessQueues:
    """One row for each politeness queue that was ever seen."""

    def __init__(self, names: Keyspace, addresses: Keyspace, sharing: Sharing = ALONE) -> None:
        self._keyspace, self._groups = names, sharing.groups
        self._addresses = Addresses(addresses, sharing.by_address)
        self.rows = np.zeros(0, POLITENESS)
        self.opens: F64 = np.zeros(0)  # per queue: when it may be fetched again
        self._queues = Names()
        self._swept, self._swept_at = 0, -np.inf
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
        return self.row_named(self._queue_of(host))

    def row_named(self, queue: str) -> int:
        """The row of a queue that is no host's: nobody shares it."""
        row = self._queues.find(queue)
        return self._add(queue) if row is None else row

    def _queue_of(self, host: str) -> str:
        queue = queue_of(host, self._groups) if self._groups else host
        return self._addresses.queue_of(host) if queue == host else queue

    def _is_shared(self, row: int) -> bool:
        return " " in self._queues.names[row]  # no host has a blank in its name

    def _add(self, queue: str) -> int:
        row = self._queues.add(queue)
        self._keyspace.put(key_of(row), queue.encode())
        self.touched.add(row)
        self._fit(row)
        self._reset(row)
        return row

    def _fit(self, row: int) -> None:
        self.rows = grown(self.rows, row + 1)
        self.opens = grown(self.opens, row + 1, -np.inf)

    def _reset(self, row: int) -> None:
        self.opens[row] = -np.inf
        self.rows[row] = np.zeros((), POLITENESS)
        for name in ("last", "next_fetch", "blocked"):
            self.rows[name][row] = -np.inf
        for name in ("delay", "median_ms"):
            self.rows[name][row] = np.nan

    def load(self, rows: np.ndarray[Any, Any]) -> None:
        """Take over queues as they were stored; their names are in the keyspace."""
        self._fit(len(rows) - 1)
        self.rows[: len(rows)] = rows
        self.opens[: len(rows)] = np.maximum(rows["next_fetch"], rows["blocked"])
        for key, name in self._keyspace.items():
            self._queues.put(name.decode(), int.from_bytes(key, "big"))
        self._queues.close_gaps()
        self._addresses.load()

    def leave(self, row: int) -> None:
        """A crawl does not use the queue any more."""
        self.rows["crawls"][row] -= 1
        self.touched.add(row)

    def leave_all(self, rows: I32) -> None:
        """The same for all hosts of a crawl, several of which may share a queue."""
        np.subtract.at(self.rows["crawls"], rows, 1)
        self.touched.update(rows.tolist())

    def forget_idle(self, at: float) -> None:
        """Forget those of the next few queues that no crawl uses, nobody waits for and no operator has set.

        Once for one instant: upkeep calls it for each crawl.
        """
        if at == self._swept_at:
            return
        self._swept_at = at
        start = self._swept if self._swept < self.end else 0
        self._swept = start + SWEPT_AT_ONCE
        rows, opens = self.rows[start : self.end][:SWEPT_AT_ONCE], self.opens[start : self.end][:SWEPT_AT_ONCE]
        unused = (rows["crawls"] == 0) & (rows["leases"] == 0) & (rows["limit"] == 0)
        kept_s = np.where(rows["delay"] > 0, DELAY_KEPT_S, IDLE_S)
        for row in (start + np.flatnonzero(unused & (opens < at - kept_s))).tolist():
            if self._queues.names[row]:
                self._keyspace.delete(key_of(row))
                self._addresses.forget(self._queues.names[row])
                self._queues.forget(self._queues.names[row])

    def begin_anew(self, row: int) -> None:
        """Nothing that was set or promised counts any more."""
        crawls, leases = int(self.rows["crawls"][row]), int(self.rows["leases"][row])
        self._reset(row)
        self.rows["crawls"][row], self.rows["leases"][row] = crawls, leases
        self.touched.add(row)

    # what operators and robots.txt set

    def block(self, row: int, until: float) -> None:
        """As the operator says; but a queue that hosts share is never let in sooner than another of them wants."""
        if self._is_shared(row):
            until = max(until, float(self.rows["blocked"][row]))
        self.rows["blocked"][row] = until
        self.reopen(row)

    def set_delay(self, row: int, delay_s: float) -> None:
        """The pause that its robots.txt, or the operator, wants; of hosts that share a queue the longest counts.

        What the slot before was promised stays where a pause gets shorter, except for a longer one than crawls
        usually want: that may have been the mistake which is being corrected.
        """
        queue = self.rows[row]
        if self._is_shared(row) and queue["delay"] > delay_s:
            return
        shorter = delay_s < queue["delay"]
        queue["delay"] = delay_s
        owed = queue["last"] + max(delay_s, LONGEST_S if shorter else delay_s)
        queue["next_fetch"] = min(queue["next_fetch"], owed) if shorter else max(queue["next_fetch"], owed)
        self.reopen(row)

    def hold(self, row: int, until: float, delay_s: float) -> None:
        """A wish beside those of others: the longest counts, so none makes another shorter."""
        self.rows["blocked"][row] = max(until, float(self.rows["blocked"][row]))
        if delay_s > np.fmax(self.rows["delay"][row], 0.0):
            self.set_delay(row, delay_s)
        self.reopen(row)

    def reopen(self, row: int) -> None:
        self.opens[row] = max(float(self.rows["blocked"][row]), float(self.rows["next_fetch"][row]))

    # hosts whose address is known

    def locate(self, host: str, address: str) -> int | None:
        """A host is at an address; returns the row it had to leave for that, None if nothing changed."""
        before = self._queues.find(self._queue_of(host))
        changed = self._addresses.locate(host, address)
        return before if changed and before != self.row(host) else None

    def merge(self, old: int, new: int, leases: int, crawls: int) -> None:
        """A host has moved from one row to another, which keeps from now on what the host's own row promised."""
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


@part
def paced(delay_s, own_s, factor, median_ms):  # type: ignore[no-untyped-def]
    """The crawl's delay, the queue's own or so many times what a fetch takes, whichever is longest; NaN: not known.

    Where neither the crawl nor the queue wants a delay there is no pacing at all.
    """
    delay_s = max(delay_s, own_s)
    if delay_s <= 0.0 or np.isnan(median_ms):
        return delay_s
    return max(delay_s, min(factor * median_ms / 1_000.0, LONGEST_S))
