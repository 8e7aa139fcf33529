"""The most linked first: how many of the fetched pages lead here, n / (n + 10) to stay below 1."""

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
    return Policy(InDegree(seed))


class InDegree(ParentEvidence):
    def values(self, number: I64) -> F64:
        parents = self.columns["parents"][number]
        value: F64 = parents / (parents + 10.0)
        return value
