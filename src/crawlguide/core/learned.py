"""What a strategy that learns says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping


@runtime_checkable
class Accounts(Protocol):
    """A predictor that tells in numbers what it has learned so far: `learner` in the statistics of its crawl."""

    def stats(self) -> Mapping[str, float]: ...
