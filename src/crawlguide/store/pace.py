"""Politeness queues of the whole deployment: pace, latency and failures, shared by all tenants and crawls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.store.columns import grown
from crawlguide.store.rows import PACE

if TYPE_CHECKING:
    from crawlguide.core.tables import F32, F64, I64

LONGEST_BLOCK_S = 86_400.0
LONGEST_BACKOFF_S = 3_600.0
SLOW_DOWN = frozenset({429, 503})
RECENT = 15


class Pace:
    """One row for each politeness queue that was ever seen."""

    def __init__(self) -> None:
        self.rows = np.zeros(0, PACE)
        self.opens: F64 = np.zeros(0)  # per queue: when it may be fetched again
        self._recent_ms: F32 = np.zeros(0, np.float32)  # rings of the newest values, one behind the other
        self._recent_bytes: F32 = np.zeros(0, np.float32)
        self._row_of: dict[str, int] = {}

    def row(self, queue: str) -> int:
        row = self._row_of.get(queue)
        if row is None:
            row = self._row_of[queue] = len(self._row_of)
            self.rows = grown(self.rows, row + 1)
            self.opens = grown(self.opens, row + 1, -np.inf)
            self._recent_ms = grown(self._recent_ms, (row + 1) * RECENT)
            self._recent_bytes = grown(self._recent_bytes, (row + 1) * RECENT)
            self._reset(row)
        return row

    def leave(self, queues: I64) -> None:
        """Leases of these queues ended."""
        np.subtract.at(self.rows["leases"], queues, 1)

    def told(self, queue: int, failed: bool, elapsed_ms: float, size: float) -> None:
        """A fetch ended: remember how it went, how long it took and how much came."""
        row = self.rows[queue]
        row["fetches"] += 1
        row["failures"] += failed
        if elapsed_ms >= 0:
            row["median_ms"] = _remembered(self._recent_ms, queue, int(row["timed"]), elapsed_ms)
            row["timed"] += 1
        if size >= 0 and not failed:
            row["median_bytes"] = _remembered(self._recent_bytes, queue, int(row["weighed"]), size)
            row["weighed"] += 1

    def ended(self, queue: int, at: float) -> None:
        """A fetch was told; under strict politeness the delay counts from then: it reached the host no later."""
        self.rows["last"][queue] = max(float(self.rows["last"][queue]), at)

    def slow_down(self, queue: int, status: int, retry_after_s: float, at: float) -> None:
        """Retry-After is obeyed; without it 429 and 503 double the back-off, and a success halves it."""
        row = self.rows[queue]
        if status in SLOW_DOWN:
            row["backoff"] = min(max(2 * row["backoff"], 2.0), LONGEST_BACKOFF_S)
        elif 200 <= status < 400:
            row["backoff"] = row["backoff"] / 2 if row["backoff"] >= 2 else 0.0
        wait = retry_after_s if retry_after_s >= 0 else row["backoff"] * (status in SLOW_DOWN)
        if wait > 0:
            self.block(queue, max(float(row["blocked"]), at + min(wait, LONGEST_BLOCK_S)))

    def block(self, queue: int, until: float) -> None:
        self.rows["blocked"][queue] = until
        self.opens[queue] = max(until, float(self.rows["next_fetch"][queue]))

    def set_delay(self, queue: int, delay_s: float) -> None:
        row = self.rows[queue]
        row["delay"] = delay_s
        row["next_fetch"] = row["last"] + delay_s
        self.opens[queue] = max(float(row["next_fetch"]), float(row["blocked"]))

    def set_limit(self, queue: int, limit: int) -> None:
        self.rows["limit"][queue] = limit

    def _reset(self, row: int) -> None:
        self.rows[row] = np.zeros((), PACE)
        for name in ("last", "next_fetch", "blocked"):
            self.rows[name][row] = -np.inf
        for name in ("delay", "median_ms", "median_bytes"):
            self.rows[name][row] = np.nan


def _remembered(recent: F32, queue: int, count: int, value: float) -> float:
    """Keep the newest values in a ring; returns their median, which one liar cannot move far."""
    ring = recent[queue * RECENT : (queue + 1) * RECENT]
    ring[count % RECENT] = value
    return float(sorted(ring[: min(count + 1, RECENT)].tolist())[min(count, RECENT - 1) // 2])
