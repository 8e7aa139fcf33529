"""How relevant is a page to the crawl's goal (docs/relevance.md)?

`Judge` is what a crawl uses where its crawlers do not say. `goal.judge` selects the formula: `semantic` (static
embeddings, improved by the crawl's own pages), `feedstock` or `forager`, the formulas of those two systems.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.features.relevance.feedstock import five_signals
from crawlguide.features.relevance.page_judge import Judge

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.types import Page

__all__ = ["Judge", "five_signals", "judge"]


def judge(page: Page, goal: Goal) -> float:
    """From 0 to 1, as a judge says who has seen no other page. Without any goal a successful page counts half."""
    return Judge(goal).judge(page) if goal else five_signals(page, goal)
