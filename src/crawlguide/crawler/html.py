"""HTML as a crawler reads it: title, headings, main text, links with anchors, and what the page says about itself."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

from crawlguide.core import urls
from crawlguide.core.errors import UrlError
from crawlguide.crawler.page import MAX_HEADINGS, MAX_LINKS, MAX_TEXT, Link, Page, one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from selectolax.lexbor import LexborNode

    Attributes = dict[str, str | None]

ELEMENTS = (
    "a[href],area[href],frame[src],base[href],link[href],meta[content],title,h1,h2,h3,h4,h5,h6,"
    "time[datetime],script[type='application/ld+json' i]"
)
WITHOUT_TEXT = ["script", "style", "template", "noscript", "svg", "math", "iframe", "object", "select", "button"]
AROUND = ["nav", "footer", "aside", "dialog", "menu"]  # not what the page is about
MAX_REL, MAX_DIRECTIVES = 100, 50
FEED_TYPES = ("application/rss+xml", "application/atom+xml", "application/feed+json")
PUBLISHED = (
    "article:published_time",
    "datepublished",
    "og:published_time",
    "dc.date",
    "dc.date.issued",
    "date",
    "pubdate",
)
MODIFIED = ("article:modified_time", "datemodified", "og:updated_time", "last-modified", "dc.date.modified")
_DATE = re.compile(r"\s*(\d{4}-\d\d-\d\d[\dT:.,+Z -]{0,30})")
_LD_PUBLISHED = re.compile(r'"datePublished"\s{0,20}:\s{0,20}"(\d{4}-\d\d-\d\d[^"]{0,30})"')
_LD_MODIFIED = re.compile(r'"dateModified"\s{0,20}:\s{0,20}"(\d{4}-\d\d-\d\d[^"]{0,30})"')
_REFRESH = re.compile(r"\s{0,20}[\d.]{0,20}\s{0,20}[;,]?\s{0,20}url\s{0,20}=\s{0,20}['\"]?([^'\"]+)", re.IGNORECASE)
_LANGUAGE = re.compile(r"\s*([A-Za-z]{2,3})(?:[-_]|\s*(?:,|$))")


def read_html(text: str, url: str, agent: str = "crawlguide", also: tuple[str, ...] = ()) -> Page:
    """`url` is where it was found; `agent` is our name in lower case, for what pages say to us alone.

    Links that begin with one of `also`, such as "file:", are kept as they are.
    """
    tree = LexborHTMLParser(text, options=LexborDocumentOptions.WO_EVENTS)
    page = PageSoFar(url, agent, also)
    for node in tree.css(ELEMENTS):
        READERS[node.tag or ""](page, node)
    root = tree.root
    language = language_of((root.attributes.get("lang") or root.attributes.get("xml:lang") or "") if root else "")
    return Page(
        title=page.title,
        headings=tuple(page.headings),
        text=_main_text(tree),
        links=tuple(page.links),
        canonical=page.canonical,
        robots_meta=tuple(dict.fromkeys(page.robots_meta))[:MAX_DIRECTIVES],
        language=language or page.language,
        feeds=tuple(dict.fromkeys(page.feeds)),
        published=page.published or page.first_time,
        modified=page.modified,
    )


@dataclass
class PageSoFar:
    """What the elements of a page have said, in their order."""

    url: str
    agent: str
    also: tuple[str, ...] = ()
    base: str = ""
    title: str = ""
    headings: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    canonical: str | None = None
    robots_meta: list[str] = field(default_factory=list)
    language: str = ""
    feeds: list[str] = field(default_factory=list)
    published: str | None = None
    modified: str | None = None
    first_time: str | None = None

    def resolved(self, target: str) -> str | None:
        """A target in its one form; None for what no crawler could follow."""
        if self.also and target.startswith(self.also):
            return target
        try:
            found = urls.resolved(target, self.base or self.url, "")[0]
        except UrlError:
            return None
        return urls.without_userinfo(found) if "@" in target else found  # what our own URL says of it stays

    def link(self, target: str, anchor: str, rel: str) -> None:
        if len(self.links) < MAX_LINKS and (url := self.resolved(target)) is not None:
            self.links.append(Link(url, anchor, rel, len(self.links)))


def _read_link(page: PageSoFar, node: LexborNode) -> None:
    attributes = node.attributes
    target = attributes.get("href") or ""
    if not target.startswith("#"):  # a place on this page
        page.link(target, _anchor(node, attributes), one_line(attributes.get("rel") or "", MAX_REL).lower())


def _read_frame(page: PageSoFar, node: LexborNode) -> None:
    attributes = node.attributes
    page.link(attributes.get("src") or "", one_line(attributes.get("title") or ""), "")


def _read_base(page: PageSoFar, node: LexborNode) -> None:
    """The first one counts, also if it is unusable."""
    if not page.base:
        page.base = page.resolved(node.attributes.get("href") or "") or page.url


def _read_relation(page: PageSoFar, node: LexborNode) -> None:
    attributes = node.attributes
    relations = (attributes.get("rel") or "").lower().split()
    if "canonical" in relations and page.canonical is None:
        page.canonical = page.resolved(attributes.get("href") or "")
    elif "alternate" in relations and (attributes.get("type") or "").strip().lower() in FEED_TYPES:
        feed = page.resolved(attributes.get("href") or "")
        if feed is not None and len(page.feeds) < MAX_HEADINGS:
            page.feeds.append(feed)


def _read_meta(page: PageSoFar, node: LexborNode) -> None:
    attributes = node.attributes
    content = attributes.get("content") or ""
    name = (attributes.get("name") or attributes.get("property") or attributes.get("itemprop") or "").strip().lower()
    if not name:
        _read_equivalent(page, (attributes.get("http-equiv") or "").strip().lower(), content)
    elif name in ("robots", page.agent):
        page.robots_meta += directives(content)
    elif name in PUBLISHED:
        page.published = page.published or _date(content)
    elif name in MODIFIED:
        page.modified = page.modified or _date(content)


def _read_equivalent(page: PageSoFar, header: str, content: str) -> None:
    if header == "refresh" and (found := _REFRESH.match(content)):
        page.link(found[1].strip(), "", "refresh")
    elif header == "content-language":
        page.language = page.language or language_of(content)


def _read_title(page: PageSoFar, node: LexborNode) -> None:
    page.title = page.title or one_line(node.text())


def _read_heading(page: PageSoFar, node: LexborNode) -> None:
    if len(page.headings) < MAX_HEADINGS and (text := one_line(node.text(separator=" "))):
        page.headings.append(text)


def _read_time(page: PageSoFar, node: LexborNode) -> None:
    attributes = node.attributes
    date, said = _date(attributes.get("datetime") or ""), (attributes.get("itemprop") or "").lower()
    if said == "datemodified":
        page.modified = page.modified or date
    else:
        page.first_time = page.first_time or date


def _read_data(page: PageSoFar, node: LexborNode) -> None:
    """JSON-LD. Only its dates are wanted, so nothing is gained by parsing it, nor lost where it is broken."""
    text = node.text()
    if page.published is None and (found := _LD_PUBLISHED.search(text)):
        page.published = found[1]
    if page.modified is None and (found := _LD_MODIFIED.search(text)):
        page.modified = found[1]


READERS: dict[str, Callable[[PageSoFar, LexborNode], None]] = {
    "a": _read_link,
    "area": _read_link,
    "frame": _read_frame,
    "base": _read_base,
    "link": _read_relation,
    "meta": _read_meta,
    "title": _read_title,
    "time": _read_time,
    "script": _read_data,
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), _read_heading),
}


def directives(content: str) -> list[str]:
    """ "NoIndex, nofollow" -> ["noindex", "nofollow"]."""
    return [word for word in (part.strip().lower() for part in content[:500].split(",")) if word]


def language_of(text: str) -> str:
    """ "en-GB" -> "en"; "" for what is no language."""
    found = _LANGUAGE.match(text)
    return found[1].lower() if found else ""


def _anchor(node: LexborNode, attributes: Attributes) -> str:
    """Its words, or what a picture in their place stands for, or its title."""
    if text := one_line(node.text()):
        return text
    image = node if node.tag == "area" else node.css_first("img[alt]")
    alternative = image.attributes.get("alt") if image is not None else ""
    return one_line(alternative or "") or one_line(attributes.get("title") or "")


def _main_text(tree: LexborHTMLParser) -> str:
    """What the page is about, without what stands around it on every page. The tree is spent afterwards."""
    tree.strip_tags(WITHOUT_TEXT, recursive=True)
    tree.strip_tags(AROUND, recursive=True)
    parts = tree.css("main,[role=main]") or tree.css("article")
    is_one = len(parts) == 1 or (parts and parts[0].tag != "article")  # of many articles none is the page
    text = one_line(parts[0].text(separator=" "), MAX_TEXT) if is_one else ""
    if not text and tree.body is not None:  # also where scripts would have filled the main part
        text = one_line(tree.body.text(separator=" "), MAX_TEXT)
    return text


def _date(text: str) -> str | None:
    found = _DATE.match(text)
    return found[1].strip() if found else None
