"""What all predictors made of predictors have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crawlguide.strategies.composed.guard import GuardedPredictor, Member


@dataclass(frozen=True)
class Several:
    """Unless one of them says otherwise, all that are in it speak."""

    members: tuple[Member, ...]

    @property
    def parts(self) -> list[GuardedPredictor]:
        return [part for member in self.members for part in member.parts]

    def speakers(self) -> list[GuardedPredictor]:
        return [part for member in self.members for part in member.speakers()]

    def troubles(self) -> list[str]:
        return [trouble for member in self.members for trouble in member.troubles()]
