"""forager's relevance: nearness to a reference text, less that to an anti-reference, and groups of keywords.

    sim(part)  = max(0, cos(reference, part) − ANTI · cos(anti-reference, part))
    affinity   = 0.30·sim(title) + 0.20·sim(headings) + 0.50·sim(body)
    keywords   = geometric mean over the groups of their density in title and text
    relevance  = (affinity + keywords) / 2, or the one of the two that the goal has

Each keyword of the goal is a group; `|` separates its alternatives: `car|automobile`. All groups are needed, since the
geometric mean is 0 where one is missing. Alternatives match as whole words, or as whole phrases, and each counts.

forager publishes neither its weights nor how the two halves are blended, nor a scale of density; these are ours. The
vectors are those of `features.embedding`, where forager uses a sentence encoder.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from math import exp, log
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.errors import MalformedRequest
from crawlguide.core.outcomes import is_success
from crawlguide.features.embedding import Embedding
from crawlguide.features.relevance.feedstock import density, headings
from crawlguide.features.relevance.words import WORD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.definition import Goal
    from crawlguide.core.types import Page
    from crawlguide.features.embedding.table import F32

TITLE, HEADINGS, BODY = 0.30, 0.20, 0.50
ANTI = 0.5
READ = 2_000  # characters of a text


def relevance(page: Page, goal: Goal) -> float:
    """From 0 to 1; a page that could not be fetched is worth nothing."""
    if not is_success(page.status):
        return 0.0
    halves = []
    if goal.topic or goal.reference:
        halves.append(affinity(page, goal))
    if goal.keywords:
        halves.append(keywords(page, goal))
    return sum(halves) / len(halves) if halves else 0.5


def affinity(page: Page, goal: Goal) -> float:
    parts = Embedding.load().embed([page.title, headings(page), page.text[:READ]])
    similarity = np.maximum(parts @ aim(goal.reference[:READ] or goal.topic, goal.anti_reference[:READ]), 0.0)
    return float(similarity @ (TITLE, HEADINGS, BODY))


def keywords(page: Page, goal: Goal) -> float:
    """All groups are needed: the geometric mean of their densities, 0 where one is missing."""
    text, logarithms = " ".join(filter(None, (page.title, page.text[:READ]))), 0.0
    words = WORD.findall(text.lower())
    single, together = Counter(words), spaced(words)
    for group in groups(goal.keywords):
        hits = sum(together.count(phrase) if phrase.startswith(" ") else single[phrase] for phrase in group)
        if not hits:
            return 0.0
        logarithms += log(density(text, hits))
    return exp(logarithms / len(goal.keywords))


@lru_cache(maxsize=32)  # a goal may have a thousand
def groups(keywords: tuple[str, ...]) -> tuple[frozenset[str], ...]:
    """The phrases of each group of keywords; raises `MalformedRequest` for a group without a word."""
    return tuple(_group(keyword, f"goal.keywords[{number}]") for number, keyword in enumerate(keywords))


def _group(keyword: str, field: str) -> frozenset[str]:
    """Single words as they are, phrases with their spaces."""
    phrases = [WORD.findall(phrase) for phrase in keyword.lower().split("|")]
    if not all(phrases):
        raise MalformedRequest(f"{field}: expected words between the bars, got {keyword[:80]!r}", field=field)
    return frozenset(phrase[0] if len(phrase) == 1 else spaced(phrase) for phrase in phrases)


def spaced(words: Sequence[str]) -> str:
    """Words as a text in which only whole words are found: each has a space of its own on both sides."""
    return f" {'  '.join(words)} "


@lru_cache(maxsize=1_024)
def aim(wanted: str, unwanted: str) -> F32:
    """Reference, or topic, less the anti-reference: its product with a text is the similarity of the formula."""
    towards, away = Embedding.load().embed([wanted, unwanted])
    found: F32 = towards - np.float32(ANTI) * away
    return found
