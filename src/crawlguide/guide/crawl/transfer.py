"""A crawl as lines of JSON: out of one guide, into another.

The first line is the crawl's definition, then one line for each URL, then one for each page with links. Every line
stands for itself, so a part of an export can be imported, and importing twice changes nothing.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.definition import Definition
from crawlguide.core.errors import MalformedRequest, UrlError
from crawlguide.core.messages import MAX_METADATA_BYTES
from crawlguide.core.types import KnownLink, KnownPage, KnownUrl
from crawlguide.guide.crawl.composition import WARM_START, cold

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from crawlguide.core.types import Crawl
    from crawlguide.guide.local import LocalGuide

AT_ONCE = 1_000
SHOWN_AT_ONCE, TAKEN_AT_ONCE = 200, 50  # others are served in between
ADVICE = "nothing was imported; correct that line, or define the crawl first"
_DEFINITION = re.compile(rb'\s*\{\s*"(crawl|definition)"')


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
    active = await guide.crawls.get(crawl, guide.clock.now(), create=False)
    yield _lines([DefinitionLine(crawl.name, active.record.definition)])
    cursor: int | None = 0
    while cursor is not None:
        urls, cursor = await guide.store.dump(crawl, cursor, SHOWN_AT_ONCE)
        yield _lines(urls)
        await asyncio.sleep(0)
    cursor = 0
    while cursor is not None:
        pages, cursor = await guide.store.dump_links(crawl, cursor, SHOWN_AT_ONCE)
        yield _lines(pages)
        await asyncio.sleep(0)


def _lines(items: Sequence[object]) -> bytes:
    return msgspec.json.Encoder().encode_lines(items)


async def imported(guide: LocalGuide, crawl: Crawl, lines: Sequence[bytes], first: int = 1) -> Imported:
    """Take over some lines, numbered from `first` on. Returning means that they are on stable storage."""
    taken, new, skipped = 0, 0, []
    for number, line in enumerate(lines, first):
        if number % TAKEN_AT_ONCE == 0:
            await asyncio.sleep(0)
        if not line.strip():
            continue
        try:
            new += await _take(guide, crawl, line)
            taken += 1
        except (msgspec.DecodeError, UnicodeDecodeError, UrlError) as wrong:
            if await guide.store.crawl_get(crawl) is None:  # it may be the definition: defaults do not replace it
                raise MalformedRequest(f"line {number}: {wrong}; {ADVICE}") from None
            skipped.append(f"line {number}: {wrong}")
    await guide.store.commit()
    return Imported(taken, new, tuple(skipped))


async def _take(guide: LocalGuide, crawl: Crawl, line: bytes) -> int:
    """One line, by what it says; returns 1 for a new URL."""
    if _DEFINITION.match(line):
        await _define(guide, crawl, line)
        return 0
    if line.lstrip().startswith(b'{"page"'):
        page = msgspec.json.decode(line, type=KnownPage)
        await guide.crawls.get(crawl, guide.clock.now())
        await _links(guide, crawl, page)
        return 0
    known = msgspec.json.decode(line, type=KnownUrl)
    await guide.crawls.get(crawl, guide.clock.now())
    url = addresses.canonical(known.url)
    if known.metadata is not None and len(msgspec.json.encode(known.metadata)) > MAX_METADATA_BYTES:
        raise UrlError(f"metadata: expected at most {MAX_METADATA_BYTES} bytes, got more")
    known = msgspec.structs.replace(known, url=url)
    ids = np.array([addresses.identity(url)], np.uint64)
    return await guide.store.adopt(crawl, ids, [addresses.queue(url)], [known], guide.clock.now())


async def _define(guide: LocalGuide, crawl: Crawl, line: bytes) -> None:
    """A definition counts where there is none yet. One that is refused ends the import: defaults do not replace it."""
    if await guide.store.crawl_get(crawl) is not None:
        return
    try:
        definition = msgspec.json.decode(line, type=DefinitionLine).definition
        try:
            await guide.define(crawl, definition)
        except MalformedRequest as wrong:
            if wrong.field != WARM_START:
                raise
            await guide.define(crawl, cold(definition))  # the crawl that it begins with is not here
    except (msgspec.DecodeError, UnicodeDecodeError, MalformedRequest) as wrong:
        raise MalformedRequest(f"definition: {wrong}; {ADVICE}", field="definition") from None


async def _links(guide: LocalGuide, crawl: Crawl, line: KnownPage) -> None:
    links = [(addresses.canonical(link.url), link) for link in line.links]
    children = np.array([addresses.identity(url) for url, _ in links], np.uint64)
    kept: list[KnownLink] = [link for _, link in links]
    page = addresses.identity(addresses.canonical(line.page))
    await guide.store.adopt_links(crawl, page, children, kept, guide.clock.now())
