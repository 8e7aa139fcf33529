"""What a fetch says about a page and its relevance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core.types import READ_TEXT, READ_TITLE, Page

if TYPE_CHECKING:
    from crawlguide.core.messages import Fetch


def told_relevance(fetch: Fetch) -> float | None:
    """A downstream reward, else what the crawler says; None: nobody says anything."""
    return fetch.relevance if fetch.reward is None else min(max(fetch.reward, 0.0), 1.0)


def is_readable(fetch: Fetch) -> bool:
    """Whether there is a text to judge."""
    return not fetch.error and bool(fetch.title or fetch.text)


def page_of(fetch: Fetch) -> Page:
    """As far as judges read."""
    title, text = (fetch.title or "")[:READ_TITLE], (fetch.text or "")[:READ_TEXT]
    return Page(fetch.url, title, text, fetch.status or 0)
