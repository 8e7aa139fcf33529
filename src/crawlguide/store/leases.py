"""Who may fetch what until when."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


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


@dataclass
class Leases:
    """Leases by row, by crawler and by their end; each step costs what it touches."""

    by_row: dict[int, Lease] = field(default_factory=dict)
    _by_crawler: dict[str, dict[Lease, None]] = field(default_factory=dict)
    _ends: list[tuple[float, int, Lease]] = field(default_factory=list)
    _number: count[int] = field(default_factory=count)

    def __len__(self) -> int:
        return len(self.by_row)

    def add(self, lease: Lease) -> None:
        self.by_row.update(dict.fromkeys(lease.rows, lease))
        self._by_crawler.setdefault(lease.crawler_id, {})[lease] = None
        heapq.heappush(self._ends, (lease.expires, next(self._number), lease))

    def end(self, rows: Iterable[int]) -> list[int]:
        """End the leases of these rows; returns those that had one."""
        return [row for row in rows if self.by_row.pop(row, None)]

    def expired(self, at: float) -> list[int]:
        """End every lease whose time is over; returns its rows."""
        rows: list[int] = []
        while self._ends and self._ends[0][0] <= at:
            lease = heapq.heappop(self._ends)[2]
            rows += self._ended(lease)
            self._forget(lease)
        return rows

    def held_by(self, crawler_id: str) -> list[int]:
        """End everything a crawler holds; returns its rows."""
        return [row for lease in self._by_crawler.pop(crawler_id, {}) for row in self._ended(lease)]

    def next_end(self) -> float | None:
        while self._ends and not any(self.by_row.get(row) is self._ends[0][2] for row in self._ends[0][2].rows):
            self._forget(heapq.heappop(self._ends)[2])
        return self._ends[0][0] if self._ends else None

    def _ended(self, lease: Lease) -> list[int]:
        mine = [row for row in lease.rows if self.by_row.get(row) is lease]
        for row in mine:
            del self.by_row[row]
        return mine

    def _forget(self, lease: Lease) -> None:
        held = self._by_crawler.get(lease.crawler_id)
        if held is not None:
            held.pop(lease, None)
            if not held:
                del self._by_crawler[lease.crawler_id]
