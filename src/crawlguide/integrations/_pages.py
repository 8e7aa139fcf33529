"""Pages of other people's clients, read as the built-in crawler reads them, with its bounds on time and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlguide.core import urls
from crawlguide.core.errors import UrlError
from crawlguide.core.messages import Outlink
from crawlguide.crawler import charsets
from crawlguide.crawler.fetched import Fetched
from crawlguide.crawler.parse import parse

if TYPE_CHECKING:
    from collections.abc import Iterable

READ = 20_000  # characters of a text: no judge reads more
HTML = (("content-type", "text/html; charset=utf-8"),)


@dataclass(frozen=True)
class Reading:
    title: str = ""
    text: str = ""
    language: str = ""
    robots_meta: tuple[str, ...] = ()
    links: tuple[Outlink, ...] = ()


def read(html: str, url: str, robots_tags: Iterable[str], agent: str) -> Reading:
    """What a page says, and its headers X-Robots-Tag (`robots_tags`), to everybody and to the crawler that robots.txt
    calls `agent`; links that nobody can follow are left out."""
    headers = (*HTML, *(("x-robots-tag", value) for value in robots_tags))
    page = parse(Fetched(url, 200, headers=headers, body=html.encode("utf-8", "replace")), agent)
    links = tuple(Outlink(link.url, link.anchor, link.rel, link.position) for link in page.links)
    return Reading(page.title, page.text, page.language, page.robots_meta, links)


def leading_to(target: str, base: str) -> str:
    """Where a redirect or a link of a stranger's page leads, as it is told: without name and password, which the client
    would send along."""
    try:
        return urls.without_userinfo(urls.canonical(target, base)) if "@" in target else target
    except UrlError:
        return target


def decoded(body: bytes, content_type: str) -> str:
    """By the charset of the server, of the page itself, or else by a guess."""
    return charsets.decoded(body, Fetched("", headers=(("content-type", content_type),)).charset)
