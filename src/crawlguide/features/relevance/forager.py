"""forager's relevance: nearness to a reference text, less that to an anti-reference, and groups of keywords.

    sim(part)  = max(0, cos(reference, part) − ANTI · cos(anti-reference, part))
    affinity   = 0.30·sim(title) + 0.20·sim(headings) + 0.50·sim(body)
    keywords   = geometric mean over the groups of their density in title and text
    relevance  = (affinity + keywords) / 2, or the one of the two that the goal has

Each keyword of the goal is a group; `|` separates its alternatives: `car|automobile`. All groups are needed, since the
geometric mean is 0 where one is missing. Alternatives match as whole words, or as whole phrases.

forager publishes neither its weights nor how the two halves are blended, nor a scale of density; these are ours. The
vectors are those of `features.embedding`, where forager uses a sentence encoder.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from math import exp, log
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.errors import MalformedRequest
from crawlguide.core.outcomes import is_success
from crawlguide.features.embedding import Embedding
from crawlguide.features.relevance.feedstock import density, headings
from crawlguide.features.relevance.words import WORD

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.types import Page
    from crawlguide.features.embedding.table import F32

TITLE, HEADINGS, BODY = 0.30, 0.20, 0.50
ANTI = 0.5
READ = 2_000  # characters of a text
LETTER = r"[^\W_]"


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
    for group in groups(goal.keywords):
        found = density(text, partial(_count, group))
        if not found:
            return 0.0
        logarithms += log(found)
    return exp(logarithms / len(goal.keywords))


def _count(group: re.Pattern[str], text: str) -> int:
    return len(group.findall(text))


@lru_cache(maxsize=128)  # a goal may have a thousand
def groups(keywords: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """A pattern for each group of keywords; raises `MalformedRequest` for a group without a word."""
    return tuple(_group(keyword, f"goal.keywords[{number}]") for number, keyword in enumerate(keywords))


def _group(keyword: str, field: str) -> re.Pattern[str]:
    phrases = [WORD.findall(phrase) for phrase in keyword.lower().split("|")]
    if not all(phrases):
        raise MalformedRequest(f"{field}: expected words between the bars, got {keyword[:80]!r}", field=field)
    longest_first = sorted((r"[\W_]+".join(map(re.escape, phrase)) for phrase in phrases), key=len, reverse=True)
    return re.compile(f"(?<!{LETTER})(?:{'|'.join(longest_first)})(?!{LETTER})")


@lru_cache(maxsize=1_024)
def aim(wanted: str, unwanted: str) -> F32:
    """Reference, or topic, less the anti-reference: its product with a text is the similarity of the formula."""
    towards, away = Embedding.load().embed([wanted, unwanted])
    found: F32 = towards - np.float32(ANTI) * away
    return found
