"""Which URLs to rank anew when the values of all have changed: those at the heads of the queues, before or after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I64

HEAD = 900  # of either order; an ask looks at two hundred


def heads(before: F64, after: F64, waiting: I64) -> I64:
    """The best of the waiting by the old values and by the new ones: nobody else is given out before the next time."""
    if len(waiting) <= 2 * HEAD:
        return waiting
    old = waiting[np.argpartition(-before[waiting], HEAD)[:HEAD]]
    new = waiting[np.argpartition(-after[waiting], HEAD)[:HEAD]]
    return np.unique(np.concatenate([new, old]))
