"""A promise that was broken."""

from __future__ import annotations

from typing import NamedTuple


class Violation(NamedTuple):
    """Which invariant, and how it was broken."""

    invariant: str
    what: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.what}"
