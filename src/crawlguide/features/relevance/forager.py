"""forager's semantic score: nearness to a reference text, less that to an anti-reference, and groups of keywords.

    sim(part)  = max(0, cos(reference, part) − ANTI · cos(anti-reference, part))
    affinity   = 0.30·sim(title) + 0.20·sim(headings) + 0.50·sim(body)
    keywords   = geometric mean over groups of their density; a group is one keyword, `|` parts its alternatives
    relevance  = (affinity + keywords) / 2, or what there is of the two

forager says neither its weights nor how the two halves meet; these are ours. The vectors are those of
`features.embedding`, where forager asks a sentence encoder.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

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
READ = 2_000


def semantic(page: Page, goal: Goal) -> float:
    """From 0 to 1; a page that did not come is worth nothing."""
    if not is_success(page.status):
        return 0.0
    halves = []
    if goal.topic or goal.reference:
        halves.append(affinity(page, goal))
    if goal.keywords:
        halves.append(grouped(page, goal))
    return sum(halves) / len(halves) if halves else 0.5


def affinity(page: Page, goal: Goal) -> float:
    parts = Embedding.load().embed([page.title, headings(page), page.text[:READ]])
    near = np.maximum(parts @ aim(goal), 0.0)
    return float(near @ (TITLE, HEADINGS, BODY))


@lru_cache(maxsize=1_024)
def aim(goal: Goal) -> F32:
    """Reference, or topic, less the anti-reference: its product with a text is their similarity."""
    towards, away = Embedding.load().embed([goal.reference[:READ] or goal.topic, goal.anti_reference[:READ]])
    found: F32 = towards - np.float32(ANTI) * away
    return found


def grouped(page: Page, goal: Goal) -> float:
    """Every group has to be there: the geometric mean of their densities."""
    text = f"{page.title} {page.text[:READ]}"
    groups = [frozenset(WORD.findall(keyword.lower())) for keyword in goal.keywords]
    return float(np.prod([density(text, group) for group in groups]) ** (1 / len(groups)))
