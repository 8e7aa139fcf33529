"""Predictors in reserve: the opinion of the first that works counts, and all of them learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlguide.core.definition import Fixed
from crawlguide.strategies.composed.guard import Composite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.types import Batch
    from crawlguide.strategies.composed.guard import GuardedPredictor, Member, Opinion, Purpose


class Stage(Fixed, frozen=True):
    """A member has no options beside its own."""


@dataclass(frozen=True)
class Fallback(Composite):
    @property
    def version(self) -> str:
        """Of the one whose opinion counts."""
        return next((member.version for member in self.members if member.working()), self.members[0].version)

    def working(self) -> list[GuardedPredictor]:
        return next((parts for member in self.members if (parts := member.working())), [])

    def failures(self) -> list[str]:
        """Of those before the first that works; the ones behind it were not asked."""
        failures: list[str] = []
        for member in self.members:
            failures += member.failures()
            if member.working():
                break
        return failures

    def judge(self, batch: Batch, purpose: Purpose) -> Opinion | None:
        opinions = (member.judge(batch, purpose) for member in self.members)
        return next((one for one in opinions if one is not None), None)


def build(members: Sequence[Member], stages: Sequence[Stage]) -> Fallback:
    return Fallback(tuple(members))
