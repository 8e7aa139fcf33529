"""A reference, not a policy: it is shown which of the URLs it has found are relevant. Those first.

Where it has none, it takes the URL that most relevant pages link to, of equals a random one: it does not know where
links lead beyond the next page, so it is no bound, and a good explorer may pass it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls
from crawlguide.core.definition import Fixed
from crawlguide.lab.policies._shared import ParentEvidence, Policy

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64, I64


class Options(Fixed, frozen=True):
    kind: str = ""
    gold: tuple[str, ...] = ()  # every relevant URL


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Policy(OneHop(seed, options.gold))


class OneHop(ParentEvidence):
    def __init__(self, seed: int, gold: tuple[str, ...]) -> None:
        super().__init__(seed)
        self.gold = np.array(sorted(urls.identity(url) for url in gold), np.uint64)

    def values(self, number: I64) -> F64:
        relevant, total = np.isin(self.columns.ids[number], self.gold), self.columns["total"][number]
        return np.where(relevant, 1.0, total / (1.0 + total) / 2.0)
