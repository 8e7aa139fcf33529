"""Leases: which crawler may fetch which rows, and until when."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from crawlguide.store.tables.keyspace import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from crawlguide.store.tables.keyspace import Keyspace


@dataclass(frozen=True, eq=False)
class Lease:
    """What one answer granted: some rows, to one crawler, for one request."""

    crawler_id: str
    request_id: str | None
    expires: float
    rows: Mapping[int, float]  # and when each may start
    strict: bool = False

    @property
    def holder(self) -> tuple[str, str | None]:
        return self.crawler_id, self.request_id


MOST_FORGOTTEN = 100  # that the heap of ends may hold besides as many as there are

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Lease)


class Leases:
    """Leases by row, by crawler and by their end; each step costs what it touches.

    A lease that holds no row any more is forgotten at once, however long it was granted for.
    """

    def __init__(self, keyspace: Keyspace) -> None:
        self.by_row: dict[int, Lease] = {}
        self._keyspace = keyspace
        self._numbers: dict[Lease, int] = {}  # of those that hold a row: their keys
        self._rows: Counter[Lease] = Counter()  # that each holds
        self._by_crawler: dict[str, dict[Lease, None]] = {}
        self._held: Counter[str] = Counter()  # rows, by crawler
        self._ends: list[tuple[float, int, Lease]] = []  # a heap; some may be forgotten
        self._next = 0

    def __len__(self) -> int:
        return len(self.by_row)

    def add(self, lease: Lease) -> None:
        self._keyspace.put(key_of(self._next, 8), _encoder.encode(lease))
        self._hold(self._next, lease, lease.rows)

    def load(self, is_leased: Callable[[int], bool]) -> None:
        """Take over leases as they were stored; of two for one row the newer one holds."""
        for key, value in list(self._keyspace.items()):
            lease = _decoder.decode(value)
            rows = [row for row in lease.rows if is_leased(row)]
            if rows:
                self._hold(int.from_bytes(key, "big"), lease, rows)
            else:
                self._keyspace.delete(key)

    def _hold(self, number: int, lease: Lease, rows: Collection[int]) -> None:
        self.end(rows)
        self.by_row.update(dict.fromkeys(rows, lease))
        self._numbers[lease], self._rows[lease] = number, len(rows)
        self._held[lease.crawler_id] += len(rows)
        self._by_crawler.setdefault(lease.crawler_id, {})[lease] = None
        heapq.heappush(self._ends, (lease.expires, number, lease))
        self._next = number + 1

    def end(self, rows: Iterable[int]) -> list[int]:
        """End the leases of these rows; returns those that had one."""
        ended = {row: lease for row in rows if (lease := self.by_row.pop(row, None))}
        for lease in ended.values():
            self._left(lease, 1)
        return list(ended)

    def expired(self, at: float) -> list[int]:
        """End every lease whose time is over; returns its rows."""
        rows: list[int] = []
        while (end := self.next_end()) is not None and end <= at:
            rows += self._ended(self._ends[0][2])
        return rows

    def release(self, crawler_id: str) -> list[int]:
        """End every lease of a crawler; returns its rows."""
        return [row for lease in list(self._by_crawler.get(crawler_id, ())) for row in self._ended(lease)]

    def count(self, crawler_id: str) -> int:
        """How many rows a crawler holds."""
        return self._held[crawler_id]

    def next_end(self) -> float | None:
        """When the first lease ends."""
        while self._ends and self._ends[0][2] not in self._numbers:
            heapq.heappop(self._ends)
        return self._ends[0][0] if self._ends else None

    def _ended(self, lease: Lease) -> list[int]:
        mine = [row for row in lease.rows if self.by_row.get(row) is lease]
        for row in mine:
            del self.by_row[row]
        self._left(lease, len(mine))
        return mine

    def _left(self, lease: Lease, rows: int) -> None:
        """A lease holds so many rows less, and is forgotten with the last one."""
        self._held[lease.crawler_id] -= rows
        if not self._held[lease.crawler_id]:
            del self._held[lease.crawler_id]
        self._rows[lease] -= rows
        if not self._rows[lease]:
            self._forget(lease)

    def _forget(self, lease: Lease) -> None:
        self._keyspace.delete(key_of(self._numbers.pop(lease), 8))
        del self._rows[lease], self._by_crawler[lease.crawler_id][lease]
        if not self._by_crawler[lease.crawler_id]:
            del self._by_crawler[lease.crawler_id]
        if len(self._ends) > 2 * len(self._numbers) + MOST_FORGOTTEN:
            self._ends = [end for end in self._ends if end[2] in self._numbers]
            heapq.heapify(self._ends)
