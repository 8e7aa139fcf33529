"""What a linear model learns of a lesson: what spoke for the URLs that were fetched, and what they were worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.predictors.arms.traits import traits

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I64
    from crawlguide.core.types import Lesson
    from crawlguide.predictors.arms.book import Book


class Examples(NamedTuple):
    """One row for each fetch that teaches something, and the arms that are not as they were."""

    x: F64
    reward: F64
    tried: I64  # the arm of each
    arms: I64


def examples(book: Book, lesson: Lesson) -> Examples:
    """Takes the lesson into the book too."""
    rows = book.rows(lesson.fetches.id)
    x = traits(book, rows)  # as they were when it was decided, or little later
    heard = book.hear(lesson)
    used = (rows >= 0) & ~np.isnan(heard.reward) & ~heard.late
    return Examples(x[used], heard.reward[used], book.urls["arm"][rows[used]], heard.arms)
