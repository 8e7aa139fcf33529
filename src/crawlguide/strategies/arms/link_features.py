"""Links in numbers: what a link's own text says (`Scan`), and thirteen features of it, all about 0…1."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core.kernels import f64s, fixed_bytes, i64s, kernel, matrix, nothing, part, records, u8s
from crawlguide.core.url_bytes import LINE_END, find_byte, lower
from crawlguide.features.relevance.words import topic_words
from crawlguide.strategies.arms.records import ARM, URL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.definition import Goal
    from crawlguide.core.tables import F64, I64, U8
    from crawlguide.core.types import Lesson
    from crawlguide.strategies.arms.arm_table import ArmTable

FEATURES = (
    "always",
    "pages_paid",  # mean reward of the pages that link here
    "best_page",
    "many_pages",
    "words",  # share of the goal's words in its URL and anchor
    "siblings_paid",  # mean reward of other links of the page on which it was found first
    "arm_paid",
    "arm_unknown",
    "arm_failed",
    "folders",
    "query",
    "near",  # on the same host as the page on which it was found first
    "depth",
)
URLS, ARMS = records(URL), records(ARM)
SLASH, QUESTION, MOST_FOLDERS = 47, 63, 250
BEFORE_PATH = 3  # slashes
MOST_WORDS = 200  # of a goal: each is looked for in each link


class Examples(NamedTuple):
    """What a linear model learns from a lesson: a row for each judged fetch, and the arms that changed."""

    x: F64
    reward: F64
    tried: I64  # the arm of each
    arms: I64


def examples(table: ArmTable, lesson: Lesson) -> Examples:
    """Examples of a lesson, which the table of arms learns too."""
    rows = table.rows(lesson.fetches.id)
    x = features(table, rows)  # as they were when the URL was chosen, or little later
    learned = table.learn(lesson)
    used = (rows >= 0) & learned.counted
    return Examples(x[used], learned.reward[used], table.urls["arm"][rows[used]], learned.arms)


def features(table: ArmTable, rows: I64) -> F64:
    """The features of each URL, by its row in the table; for a row of -1 they mean nothing."""
    out = np.zeros((len(rows), len(FEATURES)))
    if table.count:
        describe(table.urls, table.arms, np.maximum(rows, 0), out)
    return out


@kernel(nothing(URLS, ARMS, i64s, matrix))
def describe(urls, arms, rows, out):  # type: ignore[no-untyped-def]
    """In the order of `FEATURES`."""
    for number in range(len(rows)):
        url, column = urls[rows[number]], out[number]
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


class Scan:
    """Looks for the words of a goal in URLs and anchors, also as parts of longer words."""

    def __init__(self, goal: Goal) -> None:
        words = [word.encode() for word in topic_words(goal)[:MOST_WORDS]]
        self._words = np.frombuffer(b"".join(words) or b" ", np.uint8)
        self._ends = np.cumsum([len(word) for word in words], dtype=np.int64)

    def share(self, urls: Sequence[str], anchors: Sequence[str]) -> F64:
        """Which share of the words each link has."""
        return self.read(urls, anchors)[0]

    def read(self, urls: Sequence[str], anchors: Sequence[str]) -> tuple[F64, U8, U8]:
        """For each link: which share of the words it has, how many folders, and whether its URL has a query."""
        share, folders, query = np.empty(len(urls)), np.empty(len(urls), np.uint8), np.empty(len(urls), np.uint8)
        scan(as_lines(urls), as_lines(anchors), self._words, self._ends, share, folders, query)
        return share, folders, query


def as_lines(texts: Sequence[str]) -> U8:
    """All texts as bytes, each on a line of its own."""
    whole = "\n".join(texts)
    if whole.count("\n") >= len(texts):
        whole = "\n".join(text.replace("\n", " ") for text in texts)
    return np.frombuffer(f"{whole}\n".encode(errors="replace"), np.uint8)


@part
def has_word(text, start, end, words, first, last):  # type: ignore[no-untyped-def]
    """Whether a word stands anywhere in a piece of text, in upper or lower case."""
    for place in range(start, end - (last - first) + 1):
        at = 0
        while first + at < last and lower(text[place + at]) == words[first + at]:
            at += 1
        if first + at == last:
            return True
    return False


@kernel(nothing(fixed_bytes, fixed_bytes, fixed_bytes, i64s, f64s, u8s, u8s))
def scan(urls, anchors, words, ends, share, folders, query):  # type: ignore[no-untyped-def]
    url, anchor = 0, 0  # where the lines of this link begin
    for number in range(len(share)):
        url_end, anchor_end = (
            find_byte(urls, url, len(urls), LINE_END),
            find_byte(anchors, anchor, len(anchors), LINE_END),
        )
        count, first = 0, 0
        for last in ends:
            count += has_word(urls, url, url_end, words, first, last) or has_word(
                anchors, anchor, anchor_end, words, first, last
            )
            first = last
        share[number] = count / len(ends) if len(ends) > 0 else 0.0
        slashes, in_query = 0, False
        for place in range(url, url_end):
            slashes += urls[place] == SLASH and not in_query
            in_query = in_query or urls[place] == QUESTION
        folders[number], query[number] = min(slashes - BEFORE_PATH, MOST_FOLDERS), in_query
        url, anchor = url_end + 1, anchor_end + 1
