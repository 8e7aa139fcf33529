"""A dictionary whose entries end: answers, report ids and told fetches."""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

Key = TypeVar("Key", str, int)
Value = TypeVar("Value")


class Expiring(Generic[Key, Value]):
    def __init__(self) -> None:
        self._entries: dict[Key, tuple[float, Value]] = {}
        self._ends: list[tuple[float, Key]] = []

    def get(self, key: Key, at: float) -> Value | None:
        entry = self._entries.get(key)
        return entry[1] if entry and entry[0] > at else None

    def put(self, key: Key, value: Value, expires: float) -> None:
        self._entries[key] = (expires, value)
        heapq.heappush(self._ends, (expires, key))

    def expire(self, at: float, most: int = 1_000) -> None:
        """Forget what has ended, at most so many entries a call."""
        while self._ends and self._ends[0][0] <= at and most > 0:
            most -= 1
            end, key = heapq.heappop(self._ends)
            entry = self._entries.get(key)
            if entry and entry[0] <= end:
                del self._entries[key]

    def __len__(self) -> int:
        return len(self._entries)
