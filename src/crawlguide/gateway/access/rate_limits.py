"""Token buckets: who may come how often. One bucket for each credential, tenant and address, forgotten when full."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from crawlguide.core.errors import RateLimited

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

BURST_S = 2.0  # what was not used for so long may be used at once
MOST_BUCKETS = 100_000


class RateLimit:
    """At most so many a second for each name; 0 means no limit."""

    def __init__(self, what: str, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._per_s, self._clock = what, per_s, clock
        self._buckets: dict[Hashable, tuple[float, float]] = {}  # what was left, and when; the least recent first

    def take(self, name: Hashable, per_s: float | None = None) -> None:
        """One more. Raises `RateLimited`, and says after how long there is room for it."""
        rate = self._per_s if per_s is None else per_s
        if rate <= 0:
            return
        now, most = self._clock(), max(1.0, rate * BURST_S)
        left, before = self._buckets.pop(name, (most, now))
        left = min(most, left + (now - before) * rate)
        self._buckets[name] = (max(0.0, left - 1.0) if left >= 1.0 else left, now)
        if len(self._buckets) > MOST_BUCKETS:
            del self._buckets[next(iter(self._buckets))]
        if left < 1.0:
            wait_s = round((1.0 - left) / rate, 3)
            raise RateLimited(f"{self._what}: expected at most {rate:g} requests a second", retry_after_s=wait_s)
