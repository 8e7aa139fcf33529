"""What each fetch of a lesson was worth to those who learn from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, Mask
    from crawlguide.core.types import Fetches

LATE = -1  # the status of feedback that comes after its fetch
RELEASED = "released"


class Outcomes(NamedTuple):
    """`reward` is NaN where nobody says anything; then there is nothing to learn, but the page is known."""

    reward: F64
    failed: Mask
    late: Mask  # feedback on a fetch that was told before
    released: Mask  # given back unused


def outcomes(fetches: Fetches) -> Outcomes:
    """A page is worth its relevance, a failure nothing."""
    wrong = np.array([bool(error) for error in fetches.error], np.bool_)
    released = np.array([error == RELEASED for error in fetches.error], np.bool_)
    failed = (fetches.status >= 400) | wrong
    reward = np.where(failed, 0.0, np.clip(fetches.relevance, 0.0, 1.0))
    return Outcomes(np.where(released, np.nan, reward), failed & ~released, fetches.status == LATE, released)
