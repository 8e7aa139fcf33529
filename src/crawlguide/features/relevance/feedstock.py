"""feedstock's relevance formula: five signals of a page.

    relevance = 0.40·content + 0.20·headings + 0.15·url + 0.15·length + 0.10·success

`content` and `headings` are the density of keywords in the text, and in the title and the markdown headings: one hit in
200 characters is full density. `url` is the share of the keywords in the URL, `length` that of 2 000 characters. Where
feedstock's code does otherwise than its documentation says, the documentation holds: titles count as headings, and only
a 2xx answer is a success.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core.outcomes import is_success
from crawlguide.features.relevance.words import WORD, topic_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from crawlguide.core.definition import Goal
    from crawlguide.core.types import Page

CONTENT, HEADINGS, URL, LENGTH, SUCCESS = 0.40, 0.20, 0.15, 0.15, 0.10
CHARACTERS_PER_HIT = 200
FULL_LENGTH = 2_000
READ = 20_000  # characters of a text
MOST_WORDS = 1_000  # of a topic: as many as there may be keywords


def relevance(page: Page, goal: Goal) -> float:
    """feedstock's own way to match: keywords as parts of words, without overlaps, and anywhere in the URL.

    Without keywords it takes the words of the topic, which feedstock ignores; without any a successful page is worth ½.
    """
    given = tuple(dict.fromkeys(keyword.lower() for keyword in goal.keywords))
    keywords, url = given or topic_words(goal)[:MOST_WORDS], page.url.lower()
    if not keywords:
        return 0.5 if is_success(page.status) else 0.0
    in_url = sum(keyword in url for keyword in keywords) / len(keywords)
    return _weighted(page, lambda text: sum(map(text.count, keywords)), in_url)


def five_signals(page: Page, goal: Goal) -> float:
    """The same formula with the words of the goal as whole words: no "art" in "party"."""
    if not goal:
        return 0.5 if is_success(page.status) else 0.0
    words = frozenset(topic_words(goal))
    in_url = len(words & frozenset(WORD.findall(page.url.lower()))) / max(len(words), 1)
    return _weighted(page, lambda text: sum(word in words for word in WORD.findall(text)), in_url)


def _weighted(page: Page, hits: Callable[[str], int], in_url: float) -> float:
    """`hits` counts keywords in a lower-case text; `in_url` is the share of the keywords that the URL has."""
    text, named = page.text[:READ], headings(page)
    total = (
        CONTENT * density(text, hits(text.lower()))
        + HEADINGS * density(named, hits(named.lower()))
        + URL * in_url
        + LENGTH * min(1.0, len(text) / FULL_LENGTH)
        + SUCCESS * is_success(page.status)
    )
    return min(total, 1.0)  # the weights are 1 together, but their sum in floating point may be more


def density(text: str, hits: int) -> float:
    """One hit in every 200 characters is full density, 1."""
    return min(1.0, hits / (len(text) / CHARACTERS_PER_HIT)) if text else 0.0


def headings(page: Page) -> str:
    """The title, and the lines of markdown that are headings."""
    lines = page.text[:READ].split("\n") if "\n#" in page.text or page.text.startswith("#") else ()
    return "\n".join((page.title, *(line.lstrip("# ") for line in lines if line.startswith("#"))))
