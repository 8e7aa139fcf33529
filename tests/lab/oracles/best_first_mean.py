"""Links of relevant pages first: the mean relevance of all pages that link here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.definition import Fixed
from crawlguide.lab.policies._shared import ParentEvidence, Policy

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64, I64


class Options(Fixed, frozen=True):
    kind: str = ""


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Policy(MeanParent(seed))


class MeanParent(ParentEvidence):
    def values(self, number: I64) -> F64:
        value: F64 = self.columns["total"][number] / np.maximum(self.columns["parents"][number], 1.0)
        return value
