"""Predictors in reserve: the first that works speaks, and all of them learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlguide.core.definition import Fixed
from crawlguide.strategies.composed.several import Several

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.types import Batch
    from crawlguide.strategies.composed.guard import GuardedPredictor, Member, Opinion


class Stage(Fixed, frozen=True):
    """Nothing is said beside kind and options."""


@dataclass(frozen=True)
class Fallback(Several):
    @property
    def version(self) -> str:
        """Of the one that speaks."""
        return next((member.version for member in self.members if member.speakers()), self.members[0].version)

    def speakers(self) -> list[GuardedPredictor]:
        return next((found for member in self.members if (found := member.speakers())), [])

    def troubles(self) -> list[str]:
        """Those behind the first that works are not asked, so nobody knows of theirs."""
        found: list[str] = []
        for member in self.members:
            found += member.troubles()
            if member.speakers():
                break
        return found

    def judge(self, batch: Batch) -> Opinion | None:
        return next((found for member in self.members if (found := member.judge(batch)) is not None), None)

    def rest(self, batch: Batch) -> Opinion | None:
        return next((found for member in self.members if (found := member.rest(batch)) is not None), None)


def build(members: Sequence[Member], stages: Sequence[Stage]) -> Fallback:
    return Fallback(tuple(members))
