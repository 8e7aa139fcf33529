"""feedstock's five signals, with its faults mended.

    relevance = 0.40·content + 0.20·heading + 0.15·url + 0.15·length + 0.10·success

Words match whole words (feedstock: parts of words), titles count as headings (it read only markdown), and only a
2xx answer is a success (it took every answer for one).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core.outcomes import is_success
from crawlguide.features.relevance.words import WORD, topic_words

if TYPE_CHECKING:
    from collections.abc import Collection

    from crawlguide.core.definition import Goal
    from crawlguide.core.types import Page

CHARACTERS_PER_HIT = 200
FULL_LENGTH = 2_000
READ = 20_000


def five_signals(page: Page, goal: Goal) -> float:
    """From 0 to 1. Without any goal a page that came well counts one half."""
    success = is_success(page.status)
    if not goal:
        return 0.5 if success else 0.0
    words, text = frozenset(topic_words(goal)), page.text[:READ]
    found = words & frozenset(WORD.findall(page.url.lower()))
    return (
        0.40 * density(text, words)
        + 0.20 * density(headings(page), words)
        + 0.15 * len(found) / max(len(words), 1)
        + 0.15 * min(1.0, len(text) / FULL_LENGTH)
        + 0.10 * success
    )


def headings(page: Page) -> str:
    """The title, and lines of markdown that are headings."""
    lines = page.text[:READ].split("\n") if "\n#" in page.text or page.text.startswith("#") else ()
    return "\n".join((page.title, *(line.lstrip("# ") for line in lines if line.startswith("#"))))


def density(text: str, words: Collection[str]) -> float:
    """One hit in every 200 characters is full density."""
    if not text:
        return 0.0
    hits = sum(word in words for word in WORD.findall(text.lower()))
    return min(1.0, hits / (len(text) / CHARACTERS_PER_HIT))
