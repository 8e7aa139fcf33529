"""A crawl as lines of JSON: out of one guide, into another.

The first line is the crawl's definition, then one line for each URL, then one for each page with links. Every line
stands for itself, so a part of an export can be imported, and importing twice changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.crawls import Definition
from crawlguide.core.errors import MalformedRequest, UrlError
from crawlguide.core.types import KnownLink, KnownPage, KnownUrl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from crawlguide.core.types import Crawl
    from crawlguide.guide.local import LocalGuide

AT_ONCE = 1_000


class DefinitionLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How an export begins."""

    crawl: str
    definition: Definition


@dataclass(frozen=True)
class Imported:
    """What came of some lines."""

    lines: int = 0
    urls: int = 0  # that were new
    skipped: tuple[str, ...] = ()  # why some lines were of no use


async def exported(guide: LocalGuide, crawl: Crawl) -> AsyncIterator[bytes]:
    """The lines, some at a time; others are served in between."""
    running = await guide.crawls.get(crawl, guide.clock.now(), create=False)
    yield _lines([DefinitionLine(crawl.name, running.definition)])
    cursor: int | None = 0
    while cursor is not None:
        urls, cursor = await guide.store.dump(crawl, cursor, AT_ONCE)
        yield _lines(urls)
    cursor = 0
    while cursor is not None:
        pages, cursor = await guide.store.dump_links(crawl, cursor, AT_ONCE)
        yield _lines(pages)


def _lines(items: Sequence[object]) -> bytes:
    return msgspec.json.Encoder().encode_lines(items)


async def imported(guide: LocalGuide, crawl: Crawl, lines: Sequence[bytes], first: int = 1) -> Imported:
    """Take over some lines, numbered from `first` on. Returning means that they are on stable storage."""
    done = Imported()
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        try:
            new = await _take(guide, crawl, line)
        except (msgspec.DecodeError, UrlError) as wrong:
            done = replace(done, skipped=(*done.skipped, f"line {number}: {wrong}"))
            continue
        done = replace(done, lines=done.lines + 1, urls=done.urls + new)
    await guide.store.commit()
    return done


async def _take(guide: LocalGuide, crawl: Crawl, line: bytes) -> int:
    """One line, by what it says; returns 1 for a new URL."""
    if line.lstrip().startswith(b'{"crawl"'):
        await _define(guide, crawl, msgspec.json.decode(line, type=DefinitionLine))
        return 0
    await guide.crawls.get(crawl, guide.clock.now())
    if line.lstrip().startswith(b'{"page"'):
        await _links(guide, crawl, msgspec.json.decode(line, type=KnownPage))
        return 0
    known = msgspec.json.decode(line, type=KnownUrl)
    url = addresses.canonical(known.url)
    known = msgspec.structs.replace(known, url=url)
    ids = np.array([addresses.identity(url)], np.uint64)
    return await guide.store.adopt(crawl, ids, [addresses.queue(url)], [known], guide.clock.now())


async def _define(guide: LocalGuide, crawl: Crawl, line: DefinitionLine) -> None:
    """A definition counts where there is none yet."""
    if await guide.store.crawl_get(crawl) is None:
        try:
            await guide.define(crawl, line.definition)
        except MalformedRequest as wrong:
            raise UrlError(wrong.message) from None


async def _links(guide: LocalGuide, crawl: Crawl, line: KnownPage) -> None:
    links = [(addresses.canonical(link.url), link) for link in line.links]
    children = np.array([addresses.identity(url) for url, _ in links], np.uint64)
    kept: list[KnownLink] = [link for _, link in links]
    page = addresses.identity(addresses.canonical(line.page))
    await guide.store.adopt_links(crawl, page, children, kept, guide.clock.now())
