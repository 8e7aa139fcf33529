"""Token buckets: who may come how often. One bucket for each credential, tenant and address, forgotten when full."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from crawlguide.core.bounded import Bounded
from crawlguide.core.errors import RateLimited

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

BURST_S = 2.0  # what was not used for so long may be used at once
MOST_BUCKETS = 100_000


class RateLimit:
    """At most so many a second for each name; 0 means no limit."""

    def __init__(self, what: str, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._per_s, self._clock = what, per_s, clock
        self._buckets: Bounded[Hashable, tuple[float, float]] = Bounded(MOST_BUCKETS)  # what was left, and when

    def take(self, name: Hashable, per_s: float | None = None) -> None:
        """One more. Raises `RateLimited`, and says after how long there is room for it."""
        rate = self._per_s if per_s is None else per_s
        if rate > 0:
            left = self._left(name, rate)
            self._buckets[name] = (left - 1.0 if left >= 1.0 else left, self._clock())
            self._check(left, rate)

    def check(self, name: Hashable) -> None:
        """The same without taking anything: whether there is room for one more."""
        if self._per_s > 0:
            self._check(self._left(name, self._per_s), self._per_s)

    def _left(self, name: Hashable, rate: float) -> float:
        now, most = self._clock(), max(1.0, rate * BURST_S)
        left, before = self._buckets.get(name, (most, now))
        return min(most, left + (now - before) * rate)

    def _check(self, left: float, rate: float) -> None:
        if left < 1.0:
            wait_s = round((1.0 - left) / rate, 3)
            raise RateLimited(f"{self._what}: expected at most {rate:g} requests a second", retry_after_s=wait_s)
