"""One reader for each kind of document."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlguide.crawler.charsets import decoded
from crawlguide.crawler.documents import read_pdf
from crawlguide.crawler.feeds import read_xml
from crawlguide.crawler.html import read_html
from crawlguide.crawler.page import MAX_TEXT, Page, one_line

if TYPE_CHECKING:
    from crawlguide.crawler.fetched import Fetched

HTML, XML, TEXT, PDF, OTHER = "html", "xml", "text", "pdf", "other"
KINDS = {
    "text/html": HTML,
    "application/xhtml+xml": HTML,
    "text/plain": TEXT,
    "text/markdown": TEXT,
    "application/pdf": PDF,
    "application/x-pdf": PDF,
    "application/xml": XML,
    "text/xml": XML,
    "application/rss+xml": XML,
    "application/atom+xml": XML,
    "application/rdf+xml": XML,
}
UNTOLD = ("", "application/octet-stream", "binary/octet-stream", "unknown/unknown")
_XHTML = re.compile(rb"<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True)
class Document:
    """What a reader needs of a fetch."""

    kind: str
    body: bytes
    url: str
    charset: str
    agent: str


def kind_of(fetched: Fetched) -> str:
    """By its media type; by its first bytes where the server does not say, or means any XML."""
    head = fetched.body[:1_024]
    if fetched.content_type in UNTOLD:
        return _sniffed(head)
    kind = KINDS.get(fetched.content_type, OTHER)
    return HTML if kind == XML and _XHTML.search(head) else kind


def _sniffed(head: bytes) -> str:
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n\x0c")
    if start.startswith(b"%PDF-"):
        return PDF
    if _BINARY.search(head):
        return OTHER
    if start.startswith(b"<?xml") and not _XHTML.search(start):
        return XML
    return HTML if start.startswith(b"<") else TEXT


def read(document: Document) -> Page:
    """Never raises."""
    try:
        return _read(document)
    except Exception as wrong:  # noqa: BLE001 - whatever a stranger's document does to a parser, the crawl goes on
        return Page(problem=one_line(f"cannot be read as {document.kind}: {type(wrong).__name__}: {wrong}", 200))


def _read(document: Document) -> Page:
    if document.kind == HTML:
        return read_html(decoded(document.body, document.charset), document.url, document.agent)
    if document.kind == XML:
        return read_xml(document.body, document.url)
    if document.kind == TEXT:
        return Page(text=one_line(decoded(document.body, document.charset), MAX_TEXT))
    if document.kind == PDF:
        return read_pdf(document.body, document.url)
    return Page()
