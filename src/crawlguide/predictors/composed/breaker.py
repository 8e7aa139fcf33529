"""Whoever failed is left alone for a while, and then tried again: a circuit breaker."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SHORTEST_S, LONGEST_S = 1.0, 60.0


class Breaker:
    """Left alone for a second at first, twice as long each time it fails again, a minute at most.

    One that has worked for longer than that begins anew.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.why: str | None = None  # what went wrong last; None: all is well
        self._now = now
        self._until = self._well_since = 0.0
        self._rest_s = SHORTEST_S / 2

    def lets(self) -> bool:
        """Whether it may be tried now."""
        return self.why is None or self._now() >= self._until

    def failed(self, why: str, rest_s: float | None = None) -> bool:
        """True if it was well before. `rest_s` is how long it is left alone, where that is known."""
        news, at = self.why is None, self._now()
        if news and at - self._well_since > LONGEST_S:
            self._rest_s = SHORTEST_S / 2
        self._rest_s = min(2 * self._rest_s, LONGEST_S)
        self.why, self._until = why, at + (self._rest_s if rest_s is None else rest_s)
        return news

    def worked(self) -> bool:
        """True if it was not well before."""
        if self.why is None:
            return False
        self.why, self._well_since = None, self._now()
        return True
