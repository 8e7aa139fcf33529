"""PDF: its text and links, of the first pages, where pypdf is installed (the extra `documents`)."""

from __future__ import annotations

import io
import logging
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crawlguide.core import urls
from crawlguide.core.errors import UrlError
from crawlguide.core.extras import installing
from crawlguide.crawler.page import MAX_LINKS, MAX_TEXT, Link, Page, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_PAGES = 50
ENOUGH_S = 2.0  # then what has been read must do


def read_pdf(body: bytes, url: str) -> Page:
    """Raises whatever pypdf does with a broken one; read it in a process of its own."""
    try:
        pypdf = import_module("pypdf")
    except ImportError:
        return Page(problem=f"reading PDF needs pypdf: {installing('documents')}")
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it has much to say about other people's files
    end = time.monotonic() + ENOUGH_S
    file = pypdf.PdfReader(io.BytesIO(body), strict=False)
    texts: list[str] = []
    links: list[Link] = []
    for page in _first_pages(file):
        texts.append(one_line(page.extract_text() or "", MAX_TEXT))
        for target in _targets(page):
            _add(links, target, url)
        if time.monotonic() > end or sum(map(len, texts)) > MAX_TEXT:
            break
    title = (file.metadata.title if file.metadata else None) or ""
    return Page(title=one_line(str(title)), text=" ".join(filter(None, texts))[:MAX_TEXT], links=tuple(links))


def _first_pages(file: Any) -> Iterator[Any]:
    for number in range(min(MAX_PAGES, len(file.pages))):
        yield file.pages[number]


def _targets(page: Any) -> Iterator[str]:
    """Of its annotations."""
    for reference in list(page.get("/Annots") or ())[:MAX_LINKS]:
        action = reference.get_object().get("/A")
        if action is not None and "/URI" in action.get_object():
            yield str(action.get_object()["/URI"])


def _add(links: list[Link], target: str, url: str) -> None:
    try:
        found = urls.canonical(target, url)
    except UrlError:
        return
    if len(links) < MAX_LINKS:
        links.append(Link(found, position=len(links)))
