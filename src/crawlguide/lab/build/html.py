"""A page of a source, and how HTML becomes one, read as the built-in crawler reads it."""

from __future__ import annotations

from dataclasses import dataclass

from crawlguide.crawler.charsets import decoded
from crawlguide.crawler.html import read_html as read_page

FILE = "file:"  # links of a mirror on disk: left for those who can follow them


@dataclass(frozen=True)
class SourceLink:
    """A link in its absolute form; `kind` is body or redirect."""

    url: str
    anchor: str
    kind: str = "body"


@dataclass(frozen=True)
class SourcePage:
    """One answer of the web."""

    url: str
    status: int = 200
    title: str = ""
    text: str = ""
    language: str = ""
    size: int = 0
    links: tuple[SourceLink, ...] = ()
    redirect: str | None = None
    label: str = ""  # where it came from, for people


def read_html(html: bytes, url: str, label: str = "", charset: str = "") -> SourcePage:
    """A page out of its HTML; links are resolved against `url` or its <base>."""
    page = read_page(decoded(html, charset), url, also=(FILE,))
    links = tuple(
        SourceLink(link.url, "(redirect)", "redirect") if link.rel == "refresh" else SourceLink(link.url, link.anchor)
        for link in page.links
    )
    return SourcePage(
        url, title=page.title, text=page.text, language=page.language, size=len(html), links=links, label=label
    )
