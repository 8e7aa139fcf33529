"""HTML as a crawler reads it: title, text, language, links with their anchors."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crawlguide.core.errors import ConfigError, UrlError
from crawlguide.core.urls import canonical
from crawlguide.lab.build.found import FoundLink, FoundPage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UNREAD = ["script", "style", "template", "noscript", "svg"]
MAIN = ("main", "[role=main]", "article", "body")
_REFRESH = re.compile(r"^\s*\d*\s*[;,]?\s*url\s*=\s*['\"]?([^'\"]+)", re.IGNORECASE)


def parser() -> Callable[[bytes | str], Any]:
    """selectolax's parser, where it is installed."""
    try:
        return import_module("selectolax.lexbor").LexborHTMLParser  # type: ignore[no-any-return]
    except ImportError:
        raise ConfigError(
            "reading HTML needs selectolax, which is not installed: pip install 'crawlguide[lab]'"
        ) from None


def read(html: bytes | str, url: str, label: str = "") -> FoundPage:
    """A page out of its HTML; links are resolved against `url` or its <base>."""
    tree = parser()(html)
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


def _links(tree: Any, base: str) -> Iterator[FoundLink]:
    for node in tree.css("a[href], area[href], meta[http-equiv]"):
        said = node.attributes
        if node.tag == "meta":
            refresh = _REFRESH.match(said.get("content") or "")
            if (said.get("http-equiv") or "").lower() != "refresh" or refresh is None:
                continue
            target, anchor, kind = refresh[1].strip(), "(redirect)", "redirect"
        else:
            target, anchor, kind = said.get("href") or "", _words(node.text() or said.get("alt") or ""), "body"
        if (found := absolute(target, base)) is not None:
            yield FoundLink(found, anchor, kind)


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
