"""The words of a goal, and which of them a text has: also in the plural, or with another ending."""

from __future__ import annotations

import re
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.core.definition import Goal

WORD = re.compile(r"[^\W_]+")
TOO_COMMON = frozenset(
    ("a", "an", "and", "are", "as", "at", "by", "for", "from", "in", "is", "of", "on", "or", "the", "to", "with")
)
KEY = 4  # letters that two forms of a word have in common at least
SHARE = 0.65  # of the longer one
MOST_KNOWN = 20_000  # words that are looked up once
LONGEST = 64  # letters; what is longer is a code, of which there is one form


@lru_cache(maxsize=64)
def topic_words(goal: Goal) -> tuple[str, ...]:
    """The words of the keywords, or of the topic where there are none, or of the reference; each once."""
    source = " ".join(goal.keywords) or goal.topic or goal.reference
    return tuple(word for word in dict.fromkeys(WORD.findall(source.lower())) if word not in TOO_COMMON)


def words_in(text: str) -> list[str]:
    return WORD.findall(text.lower())


class Matcher:
    """Finds forms of some words in texts; how many words there are, and how they begin, makes little difference."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self._words = len(words)
        self._known: dict[str, frozenset[int]] = {}  # of words that texts had
        self._by_beginning: dict[str, set[int]] = {}
        for number, word in enumerate(words):
            for beginning in beginnings(word):
                self._by_beginning.setdefault(beginning, set()).add(number)

    def share(self, text: str) -> float:
        """Which share of the words occurs in a text."""
        return self.share_among(set(words_in(text)))

    def share_among(self, words: set[str]) -> float:
        """The same for the words of a text."""
        return len(self._found(words)) / self._words if self._words else 0.0

    def _found(self, words: set[str]) -> set[int]:
        """Most words of a text have been looked up before."""
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        for word in words.difference(self._known):
            begun = self._by_beginning.keys() & set(beginnings(word))
            self._known[word] = frozenset().union(*(self._by_beginning[beginning] for beginning in begun))
        return set().union(*filter(None, map(self._known.__getitem__, words)))


def beginnings(word: str) -> Iterator[str]:
    """Two words are forms of one if one of these is the same: they begin alike for most of the longer one's length.

    statistics and statistical have "statistic" in common, which is more than 65 % of both.
    """
    stem = singular(word)
    yield stem
    if len(stem) <= LONGEST:
        for size in range(max(KEY, ceil(SHARE * len(stem))), len(stem)):
            yield stem[:size]


def singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] == "s" else word
