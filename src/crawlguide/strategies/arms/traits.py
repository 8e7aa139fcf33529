"""What speaks for a link, in numbers: one column each, all about from 0 to 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core.kernels import i64s, kernel, matrix, nothing
from crawlguide.strategies.arms.evidence import ARMS, URLS

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I64
    from crawlguide.core.types import Lesson
    from crawlguide.strategies.arms.arm_table import ArmTable

NAMES = (
    "always",
    "pages_paid",  # share of worth among the pages that link here
    "best_page",
    "many_pages",
    "words",  # of the goal
    "siblings_paid",  # what other links of the page that made it known were worth
    "arm_paid",
    "arm_unknown",
    "arm_failed",
    "folders",
    "query",
    "near",  # on the same host as the page that made it known
    "depth",
)


def traits(book: ArmTable, rows: I64) -> F64:
    """A row of traits for each row of the book; of -1 they are somebody else's, and do not matter."""
    found = np.zeros((len(rows), len(NAMES)))
    if book.many:
        describe(book.urls, book.arms, np.maximum(rows, 0), found)
    return found


@kernel(nothing(URLS, ARMS, i64s, matrix))
def describe(urls, arms, rows, found):  # type: ignore[no-untyped-def]
    for number in range(len(rows)):
        url, column = urls[rows[number]], found[number]
        column[:] = 0.0
        column[0] = 1.0
        column[1] = (url.total + 0.5) / (url.parents + 2.0)
        column[2] = url.best
        column[3] = np.log1p(url.parents) / 4.0
        column[4] = url.words
        column[5] = 0.25
        if url.page >= 0:
            page = urls[url.page]
            column[5] = (page.paid + 0.5) / (page.tried + 2.0)
        if url.arm >= 0:
            arm = arms[url.arm]
            column[6] = (arm.reward + 0.5) / (arm.plays + 2.0)
            column[7] = 1.0 / (1.0 + arm.plays)
            column[8] = arm.failed / (arm.plays + 1.0)
        column[9] = min(url.folders / 8.0, 1.0)
        column[10] = url.query
        column[11] = url.near
        column[12] = min(url.depth / 8.0, 1.0)


# What a linear model learns of a lesson: what spoke for the URLs that were fetched, and what they were worth.


class Examples(NamedTuple):
    """One row for each fetch that teaches something, and the arms that are not as they were."""

    x: F64
    reward: F64
    tried: I64  # the arm of each
    arms: I64


def examples(book: ArmTable, lesson: Lesson) -> Examples:
    """Takes the lesson into the book too."""
    rows = book.rows(lesson.fetches.id)
    x = traits(book, rows)  # as they were when it was decided, or little later
    heard = book.hear(lesson)
    used = (rows >= 0) & ~np.isnan(heard.reward) & ~heard.late
    return Examples(x[used], heard.reward[used], book.urls["arm"][rows[used]], heard.arms)
