"""Links of the most relevant page first: the relevance of the best page that links here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core.definition import Fixed
from crawlguide.lab.policies._shared import ParentEvidence, Policy

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64, I64


class Options(Fixed, frozen=True):
    kind: str = ""


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Policy(BestParent(seed))


class BestParent(ParentEvidence):
    def values(self, number: I64) -> F64:
        return self.columns["best"][number]
