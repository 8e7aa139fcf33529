"""How often an ask may look again when all that it found has sunk.

Looks are earned and saved up: some asks may look far, and on the mean they cost the same in a crawl of any size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.notebook import Sheet

if TYPE_CHECKING:
    from crawlguide.core.notebook import Notebook

EARNED = 1.25  # looks, by each ask
SAVED = 100  # at most
FARTHEST = 10  # looks of one ask
SPENT = np.dtype(np.float64)
FIRST = np.zeros(1, np.int64)


class RegatherBudget:
    """What of the savings is spent, in a sheet that is kept: after a restart an ask looks as far as without one."""

    def __init__(self) -> None:
        self._spent, self._kept = Sheet(SPENT), False

    @property
    def left(self) -> int:
        """For the next ask, with what it earns."""
        return min(int(SAVED - self._before), FARTHEST)

    @property
    def _before(self) -> float:
        return max(float(self._spent.rows[0]) - EARNED, 0.0) if self._spent.used else 0.0

    def spend(self, looks: int) -> None:
        """An ask has looked so often. Where none looks more than once, nothing has to be written."""
        spent = self._before + looks
        if not self._spent.used or self._spent.rows[0] != spent:
            self._spent.fit(1)
            self._spent.rows[0] = spent
            self._spent.changed(FIRST)

    def remember(self, notebook: Notebook) -> None:
        self._spent, self._kept = notebook.sheet("looks", SPENT), True

    def inherit(self, before: RegatherBudget) -> None:
        """Go on with another's savings, unless they lie in a notebook that is read anew."""
        if not self._kept:
            self._spent, self._kept = before._spent, before._kept
