"""What others write into headers, as text that can be stored, logged and sent on."""

from __future__ import annotations

import re

_CONTROLS = re.compile(r"[\x00-\x1f\x7f]+")


def shown(value: bytes) -> str:
    """UTF-8, or what is left of it; no control characters."""
    return _CONTROLS.sub(" ", value.decode("utf-8", "replace"))


def plain_line(text: str, length: int = 200) -> str:
    """For people, and for headers of our own: without control characters."""
    return _CONTROLS.sub(" ", text).strip()[:length]
