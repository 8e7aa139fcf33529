"""Counting: (relevant pages that link here + 1/2) / (pages that link here + 2)."""

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
    return Policy(Relational(seed))


class Relational(ParentEvidence):
    def values(self, number: I64) -> F64:
        value: F64 = (self.columns["total"][number] + 0.5) / (self.columns["parents"][number] + 2.0)
        return value
