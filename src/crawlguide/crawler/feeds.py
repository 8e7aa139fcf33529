"""Feeds (RSS, Atom) and sitemaps: XML whose entries are links."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from defusedxml.ElementTree import XMLParser

from crawlguide.core import urls
from crawlguide.core.errors import UrlError
from crawlguide.crawler.page import MAX_LINKS, Link, Page, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

ENTRIES = {"rss": "item", "RDF": "item", "feed": "entry", "urlset": "url", "sitemapindex": "sitemap"}
MAX_DEPTH, MAX_NAMES, MAX_FIELD = 64, 1_000, 16_384
BLOCK = 65_536


def read_xml(body: bytes, url: str) -> Page:
    """The entries of a feed or sitemap as links, with their titles as anchors; an empty page for other XML.

    What came before a fault counts: feeds are often cut off or badly escaped.
    """
    heard = Listener(url)
    parser = XMLParser(target=heard, forbid_dtd=True)
    try:
        for at in range(0, len(body), BLOCK):
            parser.feed(body[at : at + BLOCK])
            if len(heard.links) >= MAX_LINKS:
                break
    except (ParseError, ValueError, LookupError):  # ill-formed; a DTD or an entity; an unknown encoding
        pass
    return Page(title=one_line(heard.title), links=tuple(heard.links), language=heard.language)


@dataclass
class Listener:
    """Hears tags and text as the parser meets them, and keeps no tree."""

    url: str
    entry: str = ""  # the name of an entry in this kind of file
    title: str = ""
    language: str = ""
    links: list[Link] = field(default_factory=list)
    open_tags: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    fields: dict[str, str] | None = None  # of the entry that is open

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = tag.rpartition("}")[2]
        self._check(tag, attributes)
        self.open_tags.append(name)
        if len(self.open_tags) == 1:
            self._open_root(name)
        elif name == self.entry:
            self.fields = {}
        elif name == "link" and self.fields is not None and attributes.get("rel", "alternate") == "alternate":
            self.fields.setdefault("href", attributes.get("href", ""))

    def data(self, text: str) -> None:
        name = self.open_tags[-1] if self.open_tags else ""
        if self.fields is None:
            if name == "title" and len(self.title) < MAX_FIELD:
                self.title += text
            elif name == "language" and not self.language:
                self.language = text.strip().partition("-")[0].lower()[:3]
        elif self.open_tags[-2] == self.entry and len(self.fields.get(name, "")) < MAX_FIELD:
            self.fields[name] = self.fields.get(name, "") + text

    def end(self, tag: str) -> None:  # noqa: ARG002 - as the parser calls it
        name = self.open_tags.pop()
        if name == self.entry and self.fields is not None:
            self._close_entry(self.fields)
            self.fields = None

    def _open_root(self, name: str) -> None:
        if name not in ENTRIES:
            raise ValueError(f"expected a feed or a sitemap, got <{name[:80]}>")
        self.entry = ENTRIES[name]

    def _close_entry(self, fields: dict[str, str]) -> None:
        target = next((fields[name] for name in ("href", "loc", "link", "guid") if fields.get(name, "").strip()), "")
        try:
            found = urls.without_userinfo(urls.canonical(target.strip(), self.url)) if target else None
        except UrlError:
            return
        if found is not None and len(self.links) < MAX_LINKS:
            self.links.append(Link(found, one_line(fields.get("title", "")), "", len(self.links)))

    def _check(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.names.add(tag)
        self.names.update(attributes)
        if len(self.open_tags) > MAX_DEPTH or len(self.names) > MAX_NAMES:
            raise ValueError(f"expected at most {MAX_DEPTH} levels and {MAX_NAMES} names of tags and attributes")
