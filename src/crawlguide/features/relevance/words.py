"""The words of a goal, and which of them a text has: also in the plural, or with another ending."""

from __future__ import annotations

import re
from functools import lru_cache
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


@lru_cache(maxsize=1_024)
def topic_words(goal: Goal) -> tuple[str, ...]:
    """The words of the keywords, or of the topic where there are none, or of the reference; each once."""
    source = " ".join(goal.keywords) or goal.topic or goal.reference
    return tuple(word for word in dict.fromkeys(WORD.findall(source.lower())) if word not in TOO_COMMON)


class Matcher:
    """Finds forms of some words in texts; how many words there are makes little difference."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self._words = len(words)
        self._stems: dict[str, list[tuple[int, str]]] = {}
        for number, word in enumerate(words):
            self._stems.setdefault(singular(word)[:KEY], []).append((number, singular(word)))

    def share(self, text: str) -> float:
        """Which share of the words occurs in a text."""
        return len(set(self._found(text))) / self._words if self._words else 0.0

    def _found(self, text: str) -> Iterator[int]:
        for word in set(WORD.findall(text.lower())):
            stem = singular(word)
            for number, wanted in self._stems.get(stem[:KEY], ()):
                if stem == wanted or alike(stem, wanted):
                    yield number


def singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] == "s" else word


def alike(one: str, other: str) -> bool:
    """Whether two words begin alike for most of their length: statistics, statistical."""
    least = max(KEY, SHARE * max(len(one), len(other)))
    return common(one, other) >= least


def common(one: str, other: str) -> int:
    """How many letters two words begin with alike."""
    for at, (mine, its) in enumerate(zip(one, other, strict=False)):
        if mine != its:
            return at
    return min(len(one), len(other))
