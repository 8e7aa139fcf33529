"""Reading a page: its title, its text, its links with their anchors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from selectolax.lexbor import LexborHTMLParser

from crawlguide.core.errors import UrlError
from crawlguide.core.messages import MAX_OUTLINKS, Outlink
from crawlguide.core.urls import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator

READ = 20_000  # characters of a text: no judge reads more
CHARSET_WITHIN = 1_024  # bytes
WITHOUT_TEXT = ["script", "style", "template", "noscript", "svg"]
MAIN = ("main", "[role=main]", "article", "body")
_CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([a-zA-Z0-9_-]+)", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    title: str = ""
    text: str = ""
    language: str = ""
    robots_meta: tuple[str, ...] = ()
    links: tuple[Outlink, ...] = ()


def read(html: str, url: str) -> Reading:
    """What a page says; links are in their canonical form, those that nobody can follow are left out."""
    tree = LexborHTMLParser(html)
    links = tuple(_links(tree, _base(tree, url)))
    root, title = tree.css_first("html"), tree.css_first("title")
    robots = [_attribute(node, "content") for node in tree.css('meta[name="robots" i]')]
    tree.strip_tags(WITHOUT_TEXT)
    main = next((node for node in map(tree.css_first, MAIN) if node is not None), None)
    return Reading(
        title=_one_line(title.text()) if title is not None else "",
        text=_one_line(main.text(separator=" ")) if main is not None else "",
        language=_attribute(root, "lang").partition("-")[0].lower(),
        robots_meta=tuple(word.strip().lower() for content in robots for word in content.split(",")),
        links=links,
    )


def decoded(body: bytes, content_type: str) -> str:
    """By the charset of the server, of the page itself, or else UTF-8, as nearly all of the web is."""
    _, _, charset = content_type.lower().partition("charset=")
    declared = _CHARSET.search(body[:CHARSET_WITHIN])
    for name in (charset.strip(" \"';"), declared[1].decode() if declared else "", "utf-8"):
        try:
            return body.decode(name)
        except (LookupError, UnicodeDecodeError):
            continue
    return body.decode("cp1252", "replace")


def _links(tree: Any, base: str) -> Iterator[Outlink]:
    for position, node in enumerate(tree.css("a[href], area[href]")[:MAX_OUTLINKS]):
        try:
            url = canonical(_attribute(node, "href"), base)
        except UrlError:
            continue
        yield Outlink(url, _anchor(node), _attribute(node, "rel"), position)


def _anchor(node: Any) -> str:
    """Its words, or what a picture in their place stands for."""
    image = node if node.tag == "area" else node.css_first("img")
    return _one_line(node.text()) or _one_line(_attribute(image, "alt"))


def _base(tree: Any, url: str) -> str:
    try:
        return canonical(_attribute(tree.css_first("base[href]"), "href"), url)
    except UrlError:
        return url


def _attribute(node: Any, name: str) -> str:
    return str(node.attributes.get(name) or "") if node is not None else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())
