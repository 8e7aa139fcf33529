"""Reading what was fetched: HTML, XHTML, feeds, sitemaps, plain text, PDF; of anything else its type alone counts.

Small pages are read here. What could take long, a large page or a PDF, is read by a process of its own
(`crawler/reading.py`) with a bound on time and memory: parsers of strangers' documents have bad cases that nobody has
listed, and no thread can be stopped in the middle of one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from crawlguide.crawler import reading
from crawlguide.crawler.charsets import shows_markup
from crawlguide.crawler.html import directives, language_of
from crawlguide.crawler.page import Link, Page
from crawlguide.crawler.readers import HTML, PDF, Document, kind_of, read
from crawlguide.policy.robots.parser import agent_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crawlguide.crawler.fetched import Fetched

__all__ = ["Link", "Page", "parse", "robots_tag"]

# What is read here. Within these bounds the worst that was found takes about a second; most pages are within them.
MOST_BYTES = 1024 * 1024
MOST_TAGS, MOST_OPENING_TAGS = 5_000, 1_500
MOST_SQUARES = 10**9  # attributes are compared with each other: squares of the bytes between two ">", added up
QUOTES = (b'"', b"'")

WITH_VALUES = ("max-snippet", "max-image-preview", "max-video-preview", "unavailable_after")  # no names of crawlers


def parse(fetched: Fetched, agent: str) -> Page:
    """Never raises: of what cannot be read `problem` says why. `agent`: our name, for what pages say to us alone; a
    User-Agent counts by the name that robots.txt knows it by.

    A large document may block for as long as `reading.LIMIT_S`: call it from a thread where that matters.
    """
    name = agent_name(agent)
    document = _document(fetched, name)
    page = read(document) if is_quick(document) else reading.aside(document)
    said = robots_tag(fetched.header_values("x-robots-tag"), name)
    robots = dict.fromkeys([*said, *page.robots_meta])
    language = page.language or language_of(fetched.header("content-language"))
    return replace(page, robots_meta=tuple(robots), language=language)


def is_read_here(fetched: Fetched) -> bool:
    """Does `parse` read it here, within a moment?"""
    return is_quick(_document(fetched, ""))


def _document(fetched: Fetched, name: str) -> Document:
    return Document(kind_of(fetched), fetched.body, fetched.final_url, fetched.charset, name)


def is_quick(document: Document) -> bool:
    """Can nothing in it take long? Counted in the bytes, before anybody has parsed them."""
    if document.kind != HTML:
        return document.kind != PDF
    body, size = document.body, len(document.body)
    if not shows_markup(body, document.charset):
        return False
    tags = body.count(b"<")
    if size > MOST_BYTES or tags > MOST_TAGS or tags - body.count(b"</") > MOST_OPENING_TAGS:
        return False
    return size**2 <= MOST_SQUARES or _squares(body) <= MOST_SQUARES


def _squares(body: bytes) -> int:
    """Of the bytes between two ">", added up: so long may tags be. Where a value in quotes may hold the ">" of a piece
    (`a=">"`), no tag may end there, and what follows belongs to it."""
    total = size = 0
    unclosed: set[bytes] = set()
    for piece in body.split(b">"):
        size += len(piece)
        unclosed = {quote for quote in QUOTES if _is_unclosed(quote, piece, before=quote in unclosed)}
        if not unclosed:
            total, size = total + size**2, 0
    return total + size**2


def _is_unclosed(quote: bytes, piece: bytes, *, before: bool) -> bool:
    """Whether a value may have begun with this quote, here or before, and not ended. It begins after a "="."""
    at = piece.rfind(quote)
    return before if at < 0 else piece[:at].rstrip().endswith(b"=")


def robots_tag(values: Iterable[str], our_name: str) -> list[str]:
    """X-Robots-Tag: what it says to all, or after our name and a colon. Each header by itself: where several are joined
    with commas, nobody can tell where the words for one crawler end."""
    found = []
    for value in values:
        before, colon, rest = value.partition(":")
        name = before.strip().lower()
        if not colon or name in WITH_VALUES or "," in name:
            found += directives(value)
        elif name == our_name:
            found += directives(rest)
    return found
