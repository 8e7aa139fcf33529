"""PDF: its text and links, of the first pages, where pypdf is installed (the extra `documents`)."""

from __future__ import annotations

import io
import logging
import time
from contextlib import suppress
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
        texts.append(one_line(_sendable(page.extract_text() or ""), MAX_TEXT))
        for target in _targets(page):
            _add(links, target, url)
        if time.monotonic() > end or sum(map(len, texts)) > MAX_TEXT:
            break
    return Page(title=_title(file), text=" ".join(filter(None, texts))[:MAX_TEXT], links=tuple(links))


def _first_pages(file: Any) -> Iterator[Any]:
    for number in range(min(MAX_PAGES, len(file.pages))):
        yield file.pages[number]


def _title(file: Any) -> str:
    with suppress(Exception):  # its text counts, whatever stands in place of a title
        return one_line(_sendable(str((file.metadata.title if file.metadata else None) or "")))
    return ""


def _targets(page: Any) -> list[str]:
    """Of its annotations. A bad one, or something else in their place, costs neither the text nor the others."""
    found: list[str] = []
    with suppress(Exception):
        for reference in list(page.get("/Annots") or ())[:MAX_LINKS]:
            with suppress(Exception):
                found.append(_sendable(str(reference.get_object()["/A"].get_object()["/URI"])))
    return found


def _sendable(text: str) -> str:
    """Without halves of surrogate pairs, which a PDF may map its letters to."""
    return text.encode("utf-8", "replace").decode()


def _add(links: list[Link], target: str, url: str) -> None:
    try:
        found = urls.without_userinfo(urls.canonical(target, url))
    except UrlError:
        return
    if len(links) < MAX_LINKS:
        links.append(Link(found, position=len(links)))
