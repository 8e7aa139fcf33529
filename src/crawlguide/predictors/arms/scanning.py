"""Many links read at once, as bytes with a line each: words of the goal, folders, queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import F64 as FLOATS
from crawlguide.core.kernels import I64 as NUMBERS
from crawlguide.core.kernels import U8 as SMALL
from crawlguide.core.kernels import Bytes, kernel, nothing, part
from crawlguide.core.letters import LINE_END, find, lower
from crawlguide.features.relevance.words import topic_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.crawls import Goal
    from crawlguide.core.tables import F64, U8

SLASH, QUESTION, MOST_FOLDERS = 47, 63, 250
BEFORE_PATH = 3  # slashes


class Scan:
    """The words of a goal, looked for in addresses and anchors, also as parts of longer words."""

    def __init__(self, goal: Goal) -> None:
        words = [word.encode() for word in topic_words(goal)]
        self._words = np.frombuffer(b"".join(words) or b" ", np.uint8)
        self._ends = np.cumsum([len(word) for word in words], dtype=np.int64)

    def share(self, urls: Sequence[str], anchors: Sequence[str]) -> F64:
        """Which share of the words each link has."""
        return self.read(urls, anchors)[0]

    def read(self, urls: Sequence[str], anchors: Sequence[str]) -> tuple[F64, U8, U8]:
        """Of each link: which share of the words it has, how many folders, and whether its URL has a query."""
        share, folders, query = np.empty(len(urls)), np.empty(len(urls), np.uint8), np.empty(len(urls), np.uint8)
        scan(lines(urls), lines(anchors), self._words, self._ends, share, folders, query)
        return share, folders, query


def lines(texts: Sequence[str]) -> U8:
    """All texts, each on a line of its own."""
    whole = "\n".join(texts)
    if whole.count("\n") >= len(texts):
        whole = "\n".join(text.replace("\n", " ") for text in texts)
    return np.frombuffer(f"{whole}\n".encode(errors="replace"), np.uint8)


@part
def holds(text, start, end, words, first, last):  # type: ignore[no-untyped-def]
    """Whether a word stands anywhere in a piece of text, in whatever letters."""
    for place in range(start, end - (last - first) + 1):
        at = 0
        while first + at < last and lower(text[place + at]) == words[first + at]:
            at += 1
        if first + at == last:
            return True
    return False


@kernel(nothing(Bytes, Bytes, Bytes, NUMBERS, FLOATS, SMALL, SMALL))
def scan(urls, anchors, words, ends, share, folders, query):  # type: ignore[no-untyped-def]
    here, there = 0, 0
    for number in range(len(share)):
        until, beyond = find(urls, here, len(urls), LINE_END), find(anchors, there, len(anchors), LINE_END)
        found, first = 0, 0
        for last in ends:
            found += holds(urls, here, until, words, first, last) or holds(anchors, there, beyond, words, first, last)
            first = last
        share[number] = found / len(ends) if len(ends) > 0 else 0.0
        slashes, asked = 0, False
        for place in range(here, until):
            slashes += urls[place] == SLASH and not asked
            asked = asked or urls[place] == QUESTION
        folders[number], query[number] = min(slashes - BEFORE_PATH, MOST_FOLDERS), asked
        here, there = until + 1, beyond + 1
