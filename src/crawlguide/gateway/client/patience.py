"""How often and how long clients try a call, whatever carries it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import SystemRandom
from typing import TYPE_CHECKING

from crawlguide.core.errors import ConfigError, RateLimited, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from crawlguide.core.errors import CrawlGuideError

TIMEOUT_S, RETRIES, DEADLINE_S = 30.0, 5, 60.0
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 10.0
AT_LEAST_S = 0.01  # for a try that begins just before the deadline
RETRYABLE = (UnavailableError, RateLimited)  # what another try may mend


@dataclass(frozen=True)
class Patience:
    """How often and how long both clients try a call. Time and chance come in as arguments."""

    timeout_s: float = TIMEOUT_S
    retries: int = RETRIES
    deadline_s: float = DEADLINE_S
    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = SystemRandom().random

    def __post_init__(self) -> None:
        for name in ("timeout_s", "deadline_s"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name}: expected a number above 0, got {getattr(self, name)}")
        if self.retries < 0:
            raise ConfigError(f"retries: expected an integer from 0, got {self.retries}")


class Tries:
    """The tries of one call, from its first to its deadline."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._began = patience.clock()
        self.failed = 0

    @property
    def left_s(self) -> float:
        return self._began + self._patience.deadline_s - self._patience.clock()

    @property
    def timeout_s(self) -> float:
        """For the try that begins now."""
        return max(AT_LEAST_S, min(self._patience.timeout_s, self.left_s))

    def wait_s(self, problem: CrawlGuideError) -> float:
        """How long to wait before the next try; raises the problem if there is none.

        wait = Retry-After + min(first · 2ⁿ, longest) · uniform(½, 1), so that those who failed together come back apart
        """
        doubled = min(FIRST_WAIT_S * 2.0 ** min(self.failed, 30), LONGEST_WAIT_S)
        wait = max(0.0, problem.retry_after_s or 0.0) + doubled * (1 + self._patience.chance()) / 2
        self.failed += 1
        if self.failed > self._patience.retries or wait >= self.left_s:
            problem.add_note(self._summary())
            raise problem
        return wait

    def check(self) -> None:
        """An answer that comes drop by drop is none after the deadline."""
        if self.left_s <= 0:
            raise TimeoutError

    def _summary(self) -> str:
        took_s = self._patience.clock() - self._began
        return f"given up after {self.failed} {'try' if self.failed == 1 else 'tries'} in {took_s:.1f} s"
