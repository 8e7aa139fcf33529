"""How relevant is a page to the crawl's goal?

`Judge` is what a crawl uses where its crawlers do not say: static embeddings, improved by the crawl's own pages.
`five_signals` (feedstock) and `semantic` (forager) are what others do, for comparison (docs/relevance.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.features.relevance.feedstock import five_signals
from crawlguide.features.relevance.forager import semantic
from crawlguide.features.relevance.page_judge import Judge

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.types import Page

__all__ = ["Judge", "five_signals", "judge", "semantic"]


def judge(page: Page, goal: Goal) -> float:
    """From 0 to 1, as a judge says who has seen no other page. Without any goal a page that came well counts half."""
    return Judge(goal).judge(page) if goal else five_signals(page, goal)
