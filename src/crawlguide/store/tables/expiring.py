"""Bytes that end by themselves: answers, report ids and told fetches."""

from __future__ import annotations

import heapq
from typing import Protocol


class Kept(Protocol):
    """Bytes by name, each until its own instant."""

    def get(self, key: str, at: float) -> bytes | None: ...

    def put(self, key: str, value: bytes, expires: float) -> None: ...

    def expire(self, at: float, most: int = ...) -> None:
        """Forget what has ended, at most so many entries a call."""
        ...


class Expiring:
    """In memory: a dictionary, and a heap of its ends."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[float, bytes]] = {}
        self._ends: list[tuple[float, str]] = []

    def get(self, key: str, at: float) -> bytes | None:
        entry = self._entries.get(key)
        return entry[1] if entry and entry[0] > at else None

    def put(self, key: str, value: bytes, expires: float) -> None:
        self._entries[key] = (expires, value)
        heapq.heappush(self._ends, (expires, key))

    def expire(self, at: float, most: int = 1_000) -> None:
        while self._ends and self._ends[0][0] <= at and most > 0:
            most -= 1
            end, key = heapq.heappop(self._ends)
            entry = self._entries.get(key)
            if entry and entry[0] <= end:
                del self._entries[key]

    def __len__(self) -> int:
        return len(self._entries)
