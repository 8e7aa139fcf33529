"""What a page, or the robots.txt of its origin, says of its links and of itself once it was fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crawlguide.core.messages import Fetch
    from crawlguide.policy.robots import Robots


def follows(robots: Robots | None, fetch: Fetch, url: str) -> bool:
    """Whether the links of a page may be followed: neither the page nor the robots.txt of its origin says no."""
    return robots is None or (_said(fetch).isdisjoint(("nofollow", "none")) and robots.follows(url))


def keeps(robots: Robots | None, fetch: Fetch, url: str) -> bool:
    """Whether a page may be kept; if not it is worth nothing, unless the crawler itself says what it was worth."""
    if robots is None or fetch.relevance is not None:
        return True
    return _said(fetch).isdisjoint(("noindex", "none")) and robots.keeps(url)


def _said(fetch: Fetch) -> set[str]:
    return {word.strip().lower() for text in fetch.robots_meta or () for word in text.split(",")}
