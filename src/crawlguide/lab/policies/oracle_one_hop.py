"""A reference, not a policy: it is shown which of the URLs it has found are relevant. Those first.

Where it has none, it goes by the best page that links to a URL, as `best-first` does: it does not know where links
lead beyond the next page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls
from crawlguide.core.crawls import Fixed
from crawlguide.lab.policies._evidence import Evidence
from crawlguide.lab.policies._known import Policy

if TYPE_CHECKING:
    from crawlguide.core.crawls import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64, I64


class Options(Fixed, frozen=True):
    kind: str = ""
    gold: tuple[str, ...] = ()  # every relevant URL


def build(options: Options, seed: int, goal: Goal) -> Strategy:  # noqa: ARG001 - every strategy is built so
    return Policy(OneHop(seed, options.gold))


class OneHop(Evidence):
    def __init__(self, seed: int, gold: tuple[str, ...]) -> None:
        super().__init__(seed)
        self.gold = np.array(sorted(urls.identity(url) for url in gold), np.uint64)

    def judged(self, number: I64) -> F64:
        relevant = np.isin(self.known.ids[number], self.gold)
        return np.where(relevant, 1.0, self.known["best"][number] / 2.0)
