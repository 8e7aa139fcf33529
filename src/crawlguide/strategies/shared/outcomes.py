"""What each fetch of a lesson was worth to those who learn from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from crawlguide.core.outcomes import LATE, failures, releases

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, Mask
    from crawlguide.core.types import Lesson


class Outcomes(NamedTuple):
    """`reward` is NaN where nobody says anything; then there is nothing to learn, but the page is known."""

    reward: F64
    failed: Mask
    late: Mask  # feedback on a fetch that was told before
    released: Mask  # given back unused


def outcomes(lesson: Lesson) -> Outcomes:
    fetches = lesson.fetches
    released = releases(fetches)
    return Outcomes(lesson.worth, failures(fetches) & ~released, fetches.status == LATE, released)
