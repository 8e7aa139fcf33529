"""What a guide learns from a page: its title, its words and the texts of its links, as Scrapy's parser finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import xxhash
from lxml import etree
from scrapy.http import TextResponse
from scrapy.utils.response import get_base_url

from crawlguide.core.errors import UrlError
from crawlguide.core.urls import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Response

MOST_CHARACTERS = 10_000  # of a page are told
MOST_LINKS, LONGEST_ANCHOR = 10_000, 200
NO_WORDS = frozenset({"script", "style", "noscript", "template"})


class Anchor(NamedTuple):
    text: str
    rel: str
    position: int


def address(url: str) -> str:
    """By which a link is found again; "" for what no guide can know."""
    try:
        return canonical(url)
    except UrlError:
        return ""


def words(response: Response) -> dict[str, Any]:
    """The facts of a report that come from the page itself; of a picture only its hash."""
    known = {"content_hash": xxhash.xxh3_128_hexdigest(response.body)} if response.body else {}
    root = _root(response)
    if root is None:
        return known | ({"text": response.text[:MOST_CHARACTERS]} if isinstance(response, TextResponse) else {})
    return known | {"title": _title(root), "text": _joined(_texts(root), MOST_CHARACTERS)} | _language(root)


def anchors(response: Response) -> dict[str, Anchor]:
    """The links of a page by their canonical URL; of several to one URL the first that has a text."""
    root = _root(response)
    found: dict[str, Anchor] = {}
    if root is None:
        return found
    base = get_base_url(response)  # type: ignore[arg-type]  # it has a root, so it is a text
    for position, element in enumerate(LINKS(root)[:MOST_LINKS]):
        if next(element.iterancestors("a"), None) is not None:
            continue  # no text is read for a link and for all links around it
        try:
            url = canonical(element.get("href").strip(), base)
        except UrlError:
            continue
        if url not in found or not found[url].text:
            text = _joined(element.itertext(), LONGEST_ANCHOR) or _joined(PICTURE(element), LONGEST_ANCHOR)
            found[url] = Anchor(text, element.get("rel", ""), position)
    return found


def _xpath(expression: str) -> Any:
    return etree.XPath(expression, smart_strings=False)


TITLE = _xpath("(//title)[1]")
BODIES = _xpath("//body[not(ancestor::body or ancestor::nav)]")
LANGUAGE = _xpath("string(/html/@lang)")
LINKS = _xpath("//a[@href]")
PICTURE = _xpath(".//img/@alt | @title")


def _root(response: Response) -> Any:
    """The parsed page, which callbacks have used; None: it is no page."""
    if not isinstance(response, TextResponse) or not response.body:
        return None
    if response.selector.type not in {"html", "xml"}:
        return None
    return response.selector.root


def _language(root: Any) -> dict[str, str]:
    language = LANGUAGE(root)[:35]
    return {"language": language} if language else {}


def _title(root: Any) -> str:
    return next((_joined(title.itertext(), 500) for title in TITLE(root)), "")


def _texts(root: Any) -> Iterator[str]:
    """One after the other, as far as somebody reads: XPath puts all of them in order first, and beside comments takes
    the square of the time that they are many."""
    for body in BODIES(root):
        menus = 0  # around what is read
        for event, node in etree.iterwalk(body, ("start", "end", "comment", "pi")):
            is_start = event == "start"
            menus += is_start and node.tag == "nav"
            found, inside = (node.text, node) if is_start else (node.tail, node.getparent())
            menus -= event == "end" and node.tag == "nav"
            if found and not menus and _has_words(inside) and (is_start or node is not body):
                yield found


def _has_words(element: Any) -> bool:
    """Not programs; and links of menus say little of this page."""
    if element.tag == "a":
        return getattr(element.getparent(), "tag", None) != "li"
    return element.tag not in NO_WORDS


def _joined(texts: Any, most: int) -> str:
    """White space is one blank, and what is beyond `most` characters is not looked at."""
    parts: list[str] = []
    size = 0
    for text in texts:
        part = " ".join(text.split())
        if part:
            parts.append(part)
            size += len(part) + 1
        if size >= most:
            break
    return " ".join(parts)[:most]
