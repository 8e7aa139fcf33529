"""Hooks for metrics and traces. Nobody listening costs one attribute look-up and an empty call."""

from __future__ import annotations

from typing import Protocol


class Telemetry(Protocol):
    """What the guide says about itself while it works; a door turns it into metrics, logs or traces."""

    def count(self, event: str, amount: int = 1, /, **labels: str) -> None:
        """`event` happened `amount` times. Labels come from small fixed sets: never a URL, host or crawler."""
        ...

    def observe(self, quantity: str, value: float, /, **labels: str) -> None:
        """One measurement, in the unit that `quantity` ends with."""
        ...


class Silent:
    """Nobody listens."""

    def count(self, event: str, amount: int = 1, /, **labels: str) -> None:
        pass

    def observe(self, quantity: str, value: float, /, **labels: str) -> None:
        pass


SILENT = Silent()
