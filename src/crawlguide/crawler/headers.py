"""What others write into headers, as text that can be stored, logged and sent on."""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

_CONTROLS = re.compile(r"[\x00-\x1f\x7f]+")
MOST_RETRY_S = 366 * 86_400.0


def shown(value: bytes) -> str:
    """UTF-8, or what is left of it; no control characters."""
    return _CONTROLS.sub(" ", value.decode("utf-8", "replace"))


def one_line(text: str, length: int = 200) -> str:
    """For people, and for headers of our own."""
    return _CONTROLS.sub(" ", text).strip()[:length]


def retry_after_s(value: str, date: str, now: float) -> float | None:
    """Seconds, or a date less the date of the answer by the server's own clock, else by ours. None: no wish."""
    value = value.strip()
    if value.isascii() and value.isdecimal():
        return min(float(value[:12]), MOST_RETRY_S)
    until = _instant(value)
    if until is None:
        return None
    return min(max(0.0, until - (_instant(date) or now)), MOST_RETRY_S)


def _instant(date: str) -> float | None:
    try:
        found = parsedate_to_datetime(date[:100])
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
