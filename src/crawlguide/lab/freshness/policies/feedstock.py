"""feedstock's freshness evaluator, with the two of its signals that a replay has: age and whether the content changed.

    score = Σ weight · confidence · stale / Σ weight · confidence

Age weighs 0.4; a page is stale from half a day on, and the confidence rises from 0.5 to 1 within a day. The content
hash weighs 1.0: a page is stale if its last visit found another one. The evaluator names no order among equal scores;
here the one that waits longest comes first, and whatever the score is, the budget is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.lab.freshness.policies.memory import Highest, Memory

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, Mask
    from crawlguide.lab.freshness.replay import Known, Visits

MAX_AGE_DAYS = 1.0
AGE_WEIGHT, HASH_WEIGHT = 0.4, 1.0


class Evaluator:
    def __init__(self, count: int) -> None:
        self.compared = np.zeros(count, bool)
        self.differed = np.zeros(count, bool)

    def values(self, memory: Memory, now: float) -> F64:
        age = now - memory.last
        return score(age, self.compared, self.differed) + 1e-5 * age

    def learn(self, memory: Memory, visits: Visits) -> None:
        self.compared[visits.pages], self.differed[visits.pages] = True, visits.changed


def score(age: F64, compared: Mask, differed: Mask) -> F64:
    """From 0, current, to 1, stale."""
    ratio = np.minimum(age / MAX_AGE_DAYS, 1.0)
    of_age = AGE_WEIGHT * (0.5 + 0.5 * ratio)
    of_hash = HASH_WEIGHT * compared
    return (of_age * (ratio >= 0.5) + of_hash * differed) / (of_age + of_hash)


def build(known: Known) -> Highest:
    return Highest(known, Evaluator(len(known)))
