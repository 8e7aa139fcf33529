"""HTML as a crawler reads it: title, text, language, links with their anchors."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crawlguide.core.errors import ConfigError, UrlError
from crawlguide.core.urls import canonical
from crawlguide.lab.build.sources import FoundLink, FoundPage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UNREAD = ["script", "style", "template", "noscript", "svg"]
MAIN = ("main", "[role=main]", "article", "body")
LOOKED_AT = 1_024  # bytes, in which a page must say how it is written
_CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([a-zA-Z0-9_-]+)", re.IGNORECASE)
_REFRESH = re.compile(r"^\s*\d*\s*[;,]?\s*url\s*=\s*['\"]?([^'\"]+)", re.IGNORECASE)


def parser() -> Callable[[str], Any]:
    """selectolax's parser, where it is installed."""
    try:
        return import_module("selectolax.lexbor").LexborHTMLParser  # type: ignore[no-any-return]
    except ImportError:
        raise ConfigError(
            "reading HTML needs selectolax, which is not installed: pip install 'crawlguide[lab]'"
        ) from None


def read(html: bytes, url: str, label: str = "", charset: str = "") -> FoundPage:
    """A page out of its HTML; links are resolved against `url` or its <base>."""
    tree = parser()(decoded(html, charset))
    links = tuple(_links(tree, _base(tree, url)))
    root, title = tree.css_first("html"), tree.css_first("title")
    tree.strip_tags(UNREAD)
    main = next((node for node in map(tree.css_first, MAIN) if node is not None), None)
    return FoundPage(
        url,
        title=_words(title.text()) if title is not None else "",
        text=_words(main.text(separator=" ")) if main is not None else "",
        language=_language(root),
        size=len(html),
        links=links,
        label=label,
    )


def decoded(html: bytes, charset: str = "") -> str:
    """As somebody said it is to be read: the server, the page itself, or else as nearly all of the web is."""
    said = _CHARSET.search(html[:LOOKED_AT])
    for name in (charset, said[1].decode() if said else "", "utf-8"):
        try:
            return html.decode(name)
        except (LookupError, UnicodeDecodeError):
            continue
    return html.decode("cp1252", "replace")


def _links(tree: Any, base: str) -> Iterator[FoundLink]:
    for node in tree.css("a[href], area[href], meta[http-equiv]"):
        said = node.attributes
        if node.tag == "meta":
            refresh = _REFRESH.match(said.get("content") or "")
            if (said.get("http-equiv") or "").lower() != "refresh" or refresh is None:
                continue
            target, anchor, kind = refresh[1].strip(), "(redirect)", "redirect"
        else:
            target, anchor, kind = said.get("href") or "", _anchor(node), "body"
        if (found := absolute(target, base)) is not None:
            yield FoundLink(found, anchor, kind)


def _anchor(node: Any) -> str:
    """Its words, or what a picture in their place stands for."""
    image = node if node.tag == "area" else node.css_first("img")
    return _words(node.text()) or _words((image.attributes.get("alt") or "") if image is not None else "")


def absolute(target: str, base: str) -> str | None:
    """The target in its one form, or None if no crawler could follow it; `file:` links are left for those who can."""
    if target.startswith("file:"):
        return target
    try:
        return canonical(target, base)
    except UrlError:
        return None


def _base(tree: Any, url: str) -> str:
    node = tree.css_first("base[href]")
    return (absolute(node.attributes.get("href") or "", url) if node is not None else None) or url


def _language(root: Any) -> str:
    said = (root.attributes.get("lang") or root.attributes.get("xml:lang") or "") if root is not None else ""
    return str(said).partition("-")[0].lower()


def _words(text: str) -> str:
    return " ".join(text.split())
