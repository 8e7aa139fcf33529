"""Reading what was fetched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crawlguide.crawler.fetched import Fetched


@dataclass(frozen=True)
class Link:
    """A link, in its canonical form; `position` counts the links of the page from 0."""

    url: str
    anchor: str = ""
    rel: str = ""
    position: int = 0


@dataclass(frozen=True)
class Page:
    """What a page says. Dates are as the page writes them."""

    title: str = ""
    headings: tuple[str, ...] = ()
    text: str = ""
    links: tuple[Link, ...] = ()
    canonical: str | None = None
    robots_meta: tuple[str, ...] = ()
    language: str = ""
    feeds: tuple[str, ...] = ()
    published: str | None = None
    modified: str | None = None


def parse(fetched: Fetched) -> Page:
    """Never raises: what cannot be read is an empty page."""
    raise NotImplementedError
