"""Clocks, which are passed as arguments: seconds since 1970, never running backwards."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from typing import Protocol

LONGEST_RETRY_AFTER_S = 366 * 86_400.0


class Clock(Protocol):
    def now(self) -> float: ...


class SystemClock:
    """now = max(last persisted instant, wall clock at the start) + monotonic time since.

    So a wall clock that is set back, or was ahead before a restart, never moves the time of a host's next fetch or of
    the end of a lease.
    """

    def __init__(self, last_persisted: float = 0.0) -> None:
        self._start = max(last_persisted, time.time())
        self._monotonic = time.monotonic()

    def now(self) -> float:
        return self._start + time.monotonic() - self._monotonic


class ManualClock:
    """A clock that moves only by `advance`: for tests, the lab and simulations."""

    def __init__(self, at: float = 1_700_000_000.0) -> None:
        self._now = at

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError(f"seconds: expected a number from 0, got {seconds}: time never runs backwards")
        self._now += seconds


def iso(at: float) -> str:
    """1762179581.5 -> "2025-11-03T14:19:41.500Z"."""
    seconds, milliseconds = divmod(round(at * 1_000), 1_000)
    return f"{_to_the_second(seconds)}.{milliseconds:03d}Z"


def instant(text: str) -> float:
    """An instant in ISO 8601 to seconds since 1970; without a zone it means UTC. NaN for what is none."""
    try:
        when = datetime.fromisoformat(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return float("nan")


def retry_after_s(value: str | None, date: str = "", now: float | None = None) -> float | None:
    """A Retry-After header: seconds; or a date less the date of the answer by the server's own clock, else by ours.

    What is neither says nothing.
    """
    text = (value or "").strip()
    if text.isascii() and text.isdecimal():
        return min(float(text[:12]), LONGEST_RETRY_AFTER_S)
    until = _http_instant(text)
    if until is None:
        return None
    since = _http_instant(date) or (time.time() if now is None else now)
    return min(max(0.0, until - since), LONGEST_RETRY_AFTER_S)


def http_instant(date: str) -> float:
    """A date as HTTP writes it to seconds since 1970; NaN for what is none."""
    found = _http_instant(date)
    return float("nan") if found is None else found


def http_date(at: float) -> str:
    """1762179581 -> "Mon, 03 Nov 2025 14:19:41 GMT"."""
    return formatdate(at, usegmt=True)


def _http_instant(date: str) -> float | None:
    try:
        found = parsedate_to_datetime(date[:100])
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


@lru_cache(maxsize=1_024)
def _to_the_second(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def milliseconds(at: float) -> int:
    """An instant as a number that a newer one exceeds."""
    return int(at * 1_000)
