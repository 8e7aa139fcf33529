"""A page of a source, and how HTML becomes one, as a crawler reads it: title, text, language, links with anchors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crawlguide.core.errors import ConfigError, UrlError
from crawlguide.core.urls import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WITHOUT_TEXT = ["script", "style", "template", "noscript", "svg"]
MAIN = ("main", "[role=main]", "article", "body")
CHARSET_WITHIN = 1_024  # bytes
_CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([a-zA-Z0-9_-]+)", re.IGNORECASE)
_REFRESH = re.compile(r"^\s*\d*\s*[;,]?\s*url\s*=\s*['\"]?([^'\"]+)", re.IGNORECASE)


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
    tree = _parser()(decoded(html, charset))
    links = tuple(_links(tree, _base(tree, url)))
    root, title = tree.css_first("html"), tree.css_first("title")
    tree.strip_tags(WITHOUT_TEXT)
    main = next((node for node in map(tree.css_first, MAIN) if node is not None), None)
    return SourcePage(
        url,
        title=_one_line(title.text()) if title is not None else "",
        text=_one_line(main.text(separator=" ")) if main is not None else "",
        language=_language(root),
        size=len(html),
        links=links,
        label=label,
    )


def decoded(html: bytes, charset: str = "") -> str:
    """By the charset of the server, of the page itself, or else UTF-8, as nearly all of the web is."""
    declared = _CHARSET.search(html[:CHARSET_WITHIN])
    for name in (charset, declared[1].decode() if declared else "", "utf-8"):
        try:
            return html.decode(name)
        except (LookupError, UnicodeDecodeError):
            continue
    return html.decode("cp1252", "replace")


def _links(tree: Any, base: str) -> Iterator[SourceLink]:
    for node in tree.css("a[href], area[href], meta[http-equiv]"):
        attributes = node.attributes
        if node.tag == "meta":
            refresh = _REFRESH.match(attributes.get("content") or "")
            if (attributes.get("http-equiv") or "").lower() != "refresh" or refresh is None:
                continue
            target, anchor, kind = refresh[1].strip(), "(redirect)", "redirect"
        else:
            target, anchor, kind = attributes.get("href") or "", _anchor(node), "body"
        if (url := absolute(target, base)) is not None:
            yield SourceLink(url, anchor, kind)


def _anchor(node: Any) -> str:
    """Its words, or what a picture in their place stands for."""
    image = node if node.tag == "area" else node.css_first("img")
    return _one_line(node.text()) or _one_line((image.attributes.get("alt") or "") if image is not None else "")


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
    declared = (root.attributes.get("lang") or root.attributes.get("xml:lang") or "") if root is not None else ""
    return str(declared).partition("-")[0].lower()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _parser() -> Callable[[str], Any]:
    """selectolax's parser, where it is installed."""
    try:
        return import_module("selectolax.lexbor").LexborHTMLParser  # type: ignore[no-any-return]
    except ImportError:
        raise ConfigError(
            "reading HTML needs selectolax, which is not installed: pip install 'crawlguide[lab]'"
        ) from None
