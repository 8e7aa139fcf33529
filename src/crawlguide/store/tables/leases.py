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


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Lease)


class Leases:
    """Leases by row, by crawler and by their end; each step costs what it touches."""

    def __init__(self, keyspace: Keyspace) -> None:
        self.by_row: dict[int, Lease] = {}
        self._keyspace = keyspace
        self._by_crawler: dict[str, dict[Lease, None]] = {}
        self._ends: list[tuple[float, int, Lease]] = []
        self._next = 0
        self._held: Counter[str] = Counter()  # rows, by crawler

    def __len__(self) -> int:
        return len(self.by_row)

    def add(self, lease: Lease) -> None:
        self._keyspace.put(key_of(self._next, 8), _encoder.encode(lease))
        self._hold(self._next, lease, lease.rows)

    def load(self, is_leased: Callable[[int], bool]) -> None:
        """Take over leases as they were stored; of two for one row the newer one holds."""
        for key, value in self._keyspace.items():
            lease = _decoder.decode(value)
            self._hold(int.from_bytes(key, "big"), lease, [row for row in lease.rows if is_leased(row)])

    def _hold(self, number: int, lease: Lease, rows: Collection[int]) -> None:
        self.end(rows)
        self.by_row.update(dict.fromkeys(rows, lease))
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
        """End every lease whose time is over; returns its rows. The first ones that hold nothing are forgotten too."""
        rows: list[int] = []
        while self._ends and (self._ends[0][0] <= at or not self._rows_of(self._ends[0][2])):
            rows += self._ended(self._pop())
        return rows

    def release(self, crawler_id: str) -> list[int]:
        """End every lease of a crawler; returns its rows."""
        return [row for lease in self._by_crawler.pop(crawler_id, {}) for row in self._ended(lease)]

    def count(self, crawler_id: str) -> int:
        """How many rows a crawler holds."""
        return self._held[crawler_id]

    def next_end(self) -> float | None:
        """When the first lease ends that holds a row. Nothing is forgotten, so that people may look."""
        ahead = [(*self._ends[0], 0)] if self._ends else []
        while ahead:
            end, _, lease, place = heapq.heappop(ahead)
            if self._rows_of(lease):
                return end
            for below in range(2 * place + 1, min(2 * place + 3, len(self._ends))):
                heapq.heappush(ahead, (*self._ends[below], below))
        return None

    def _rows_of(self, lease: Lease) -> list[int]:
        """The rows that a lease still holds."""
        return [row for row in lease.rows if self.by_row.get(row) is lease]

    def _ended(self, lease: Lease) -> list[int]:
        mine = self._rows_of(lease)
        for row in mine:
            del self.by_row[row]
        self._left(lease, len(mine))
        return mine

    def _left(self, lease: Lease, rows: int) -> None:
        self._held[lease.crawler_id] -= rows
        if not self._held[lease.crawler_id]:
            del self._held[lease.crawler_id]

    def _pop(self) -> Lease:
        """Take out the lease that ends first."""
        _, number, lease = heapq.heappop(self._ends)
        self._keyspace.delete(key_of(number, 8))
        held = self._by_crawler.get(lease.crawler_id)
        if held is not None:
            held.pop(lease, None)
            if not held:
                del self._by_crawler[lease.crawler_id]
        return lease
