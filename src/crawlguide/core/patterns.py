"""Regular expressions that users write, searched in URLs. RE2: linear in the text, whatever the pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING

import re2

from crawlguide.core.errors import MalformedRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_BYTES = 64 * 1024 * 1024  # of memory for one compiled pattern, or for all of them together


class Patterns:
    """Several patterns at once. A text without a match costs one search, however many patterns there are."""

    def __init__(self, texts: Sequence[str], field: str) -> None:
        self.texts = tuple(texts)
        self._each = [_compiled(_alone(text), f"{field}[{number}]", text) for number, text in enumerate(texts)]
        self._any = _compiled("|".join(map(_alone, texts)), field, "all of them together") if texts else None

    def found(self, text: str) -> list[int]:
        """The numbers of the patterns that match somewhere in the text."""
        if self._any is None or not self._any.search(text):
            return []
        return [number for number, pattern in enumerate(self._each) if pattern.search(text)]

    def __bool__(self) -> bool:
        return bool(self.texts)


def check(text: str, field: str) -> None:
    """Raise `MalformedRequest` for what is no pattern."""
    _compiled(_alone(text), field, text)


def _alone(text: str) -> str:
    """A pattern that can be joined with others by "|"."""
    return f"(?:{text})"


def _compiled(pattern: str, field: str, shown: str) -> re2._Regexp:
    options = re2.Options()
    options.log_errors, options.max_mem = False, MOST_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error as wrong:
        why = wrong.args[0].decode(errors="replace") if wrong.args else "it cannot be compiled"
        message = f"{field}: expected an RE2 pattern, got {shown[:80]!r}: {why[:200]}"
        raise MalformedRequest(message, field=field) from None
    except UnicodeEncodeError as wrong:
        raise MalformedRequest(f"{field}: expected text, got {shown[:80]!r}: {wrong}", field=field) from None
