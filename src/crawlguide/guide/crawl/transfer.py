"""A crawl as lines of JSON: out of one guide, into another.

The first line is the crawl's definition, then one line for each URL, then one for each page with links. Every line
stands for itself, so a part of an export can be imported, and importing twice changes nothing.
"""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.definition import Definition
from crawlguide.core.errors import MalformedRequest, NotFound, UrlError
from crawlguide.core.messages import MAX_METADATA_BYTES, MAX_OUTLINKS
from crawlguide.core.turns import LONG_BYTES, in_turns, let_others
from crawlguide.core.types import KnownPage, KnownUrl
from crawlguide.guide.crawl.composition import WARM_START, cold

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Sequence

    from crawlguide.core.types import Crawl
    from crawlguide.guide.local import LocalGuide

    Permit = Callable[[Definition], Awaitable[None]]

Line = TypeVar("Line")
AT_ONCE = 1_000
MOST_LEVELS = 29  # of metadata: three more stand around it in an answer, and no message has more than 32
SHOWN_AT_ONCE, TAKEN_AT_ONCE, LINKS_AT_ONCE = 200, 50, 1_000  # others are served in between
MOST_SKIPPED, NAMED, LONGEST_REASON = 10_000, 100, 500  # lines of no use in one import; of which so much is said
MOST_CONTAINERS = 100_000  # lists and objects in a line about a URL or a definition; a page may have many links
ADVICE = "nothing was imported; correct that line, or define the crawl first"
_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\r|\n|\Z)")
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
    skipped: tuple[str, ...] = ()  # why lines were of no use: the first of them
    more_skipped: int = 0

    @property
    def skipped_lines(self) -> int:
        return len(self.skipped) + self.more_skipped


class Skips:
    """Lines of no use: how many, and why the first of them."""

    def __init__(self) -> None:
        self.count, self.reasons = 0, list[str]()

    def add(self, reason: str) -> None:
        if self.count == MOST_SKIPPED:
            raise MalformedRequest(f"{reason}; so are {MOST_SKIPPED} lines before it")
        self.count += 1
        if len(self.reasons) < NAMED:
            self.reasons.append(reason)


async def exported(guide: LocalGuide, crawl: Crawl) -> AsyncIterator[bytes]:
    """The lines, some at a time; others are served in between."""
    active = await guide.crawls.get(crawl, guide.clock.now(), create=False)
    yield _lines([DefinitionLine(crawl.name, active.record.definition)])
    with suppress(NotFound):  # it was deleted meanwhile: what there was of it has been sent
        async for lines in _known(guide, crawl):
            yield lines


async def _known(guide: LocalGuide, crawl: Crawl) -> AsyncIterator[bytes]:
    cursor: int | None = 0
    while cursor is not None:
        urls, cursor = await guide.store.dump(crawl, cursor, SHOWN_AT_ONCE)
        yield _lines(urls)
        await let_others()
    cursor = 0
    while cursor is not None:
        pages, cursor = await guide.store.dump_links(crawl, cursor, SHOWN_AT_ONCE)
        yield _lines(pages)
        await let_others()


def _lines(items: Sequence[object]) -> bytes:
    return msgspec.json.Encoder().encode_lines(items)


def lines_of(body: bytes) -> Iterator[bytes]:
    """The lines of a body one by one, wherever `splitlines` would end them: a list of a million would take long."""
    return (found[1] for found in _LINE.finditer(body))


async def imported(
    guide: LocalGuide,
    crawl: Crawl,
    lines: Iterable[bytes],
    first: int = 1,
    permit: Permit | None = None,
) -> Imported:
    """Take over some lines, numbered from `first` on. Returning means that they are on stable storage.

    `permit` raises for a definition that whoever imports may not give.
    """
    await guide.crawls.quotas.check_room(crawl.tenant)
    with deletions(guide) as deleted:
        return await _imported(guide, crawl, enumerate(lines, first), permit, deleted)


@contextmanager
def deletions(guide: LocalGuide) -> Iterator[set[Crawl]]:
    """The crawls that are deleted within."""
    deleted: set[Crawl] = set()
    guide.on_deleted.append(deleted.add)
    try:
        yield deleted
    finally:
        guide.on_deleted.remove(deleted.add)


async def _imported(
    guide: LocalGuide,
    crawl: Crawl,
    lines: Iterable[tuple[int, bytes]],
    permit: Permit | None,
    deleted: Collection[Crawl],
) -> Imported:
    taken, new, size, skips = 0, 0, 0, Skips()
    for number, line in lines:
        if number % TAKEN_AT_ONCE == 0 or size > LONG_BYTES:
            size = 0
            await guide.crawls.quotas.check_room(crawl.tenant)
            await let_others()
        if crawl in deleted:  # whoever deletes it in the middle means it, and one that has its name by now is another
            raise NotFound(f"crawl_id: the crawl {crawl.name!r} was deleted meanwhile", field="crawl_id")
        size += len(line)
        if not line.strip():
            continue
        try:
            fresh = await _take(guide, crawl, line, permit)
            guide.crawls.quotas.grew(crawl.tenant, fresh)
            taken, new = taken + 1, new + fresh
        except (msgspec.DecodeError, UnicodeDecodeError, UrlError) as wrong:
            if await guide.store.crawl_get(crawl) is None:  # it may be the definition: defaults do not replace it
                raise MalformedRequest(f"line {number}: {wrong}; {ADVICE}") from None
            skips.add(f"line {number}: {str(wrong)[:LONGEST_REASON]}")
    await guide.store.commit()
    return Imported(taken, new, tuple(skips.reasons), skips.count - len(skips.reasons))


async def _take(guide: LocalGuide, crawl: Crawl, line: bytes, permit: Permit | None) -> int:
    """One line, by what it says; returns 1 for a new URL."""
    if _DEFINITION.match(line):
        await _define(guide, crawl, line, permit)
        return 0
    if line.lstrip().startswith(b'{"page"'):
        page = _decoded(line, KnownPage)
        await guide.crawls.get(crawl, guide.clock.now())
        await _links(guide, crawl, page)
        return 0
    known = _decoded(line, KnownUrl)
    await guide.crawls.get(crawl, guide.clock.now())
    url = addresses.canonical(known.url)
    _check_metadata(known.metadata)
    known = msgspec.structs.replace(known, url=url)
    ids = np.array([addresses.identity(url)], np.uint64)
    return await guide.store.adopt(crawl, ids, [addresses.queue(url)], [known], guide.clock.now())


def _decoded(line: bytes, kind: type[Line]) -> Line:
    """What a line says. Raises `DecodeError`.

    Metadata can be of anything, and millions of lists take seconds to build and to look at.
    """
    if kind is not KnownPage and line.count(b"[") + line.count(b"{") > MOST_CONTAINERS:
        raise msgspec.ValidationError(f"expected at most {MOST_CONTAINERS} lists and objects, got more")
    try:
        return msgspec.json.decode(line, type=kind)
    except RecursionError:
        raise msgspec.ValidationError(f"expected at most {MOST_LEVELS} levels, got far more") from None


def _check_metadata(metadata: dict[str, Any] | None) -> None:
    """What is taken over may be handed out, so it is bounded as in any other message."""
    levels, within = 0, [metadata] if metadata is not None else []
    while within:
        levels += 1
        within = [each for one in within for each in (one.values() if isinstance(one, dict) else one) if _nests(each)]
    if levels > MOST_LEVELS:
        raise UrlError(f"metadata: expected at most {MOST_LEVELS} levels, got {levels}")
    if levels and len(msgspec.json.encode(metadata)) > MAX_METADATA_BYTES:
        raise UrlError(f"metadata: expected at most {MAX_METADATA_BYTES} bytes, got more")


def _nests(value: Any) -> bool:
    return isinstance(value, dict | list)


async def _define(guide: LocalGuide, crawl: Crawl, line: bytes, permit: Permit | None) -> None:
    """A definition counts where there is none yet. One that is refused ends the import: defaults do not replace it."""
    if await guide.store.crawl_get(crawl) is not None:
        return
    try:
        definition = _decoded(line, DefinitionLine).definition
        if permit is not None:
            await permit(definition)
        try:
            await guide.define(crawl, definition)
        except MalformedRequest as wrong:
            if wrong.field != WARM_START:
                raise
            await guide.define(crawl, cold(definition))  # the crawl that it begins with is not here
    except (msgspec.DecodeError, UnicodeDecodeError, MalformedRequest) as wrong:
        raise MalformedRequest(f"definition: {wrong}; {ADVICE}", field="definition") from None


async def _links(guide: LocalGuide, crawl: Crawl, line: KnownPage) -> None:
    links, ids = line.links[:MAX_OUTLINKS], list[int]()
    async for some in in_turns(links, LINKS_AT_ONCE):
        ids += [addresses.identity(addresses.canonical(link.url)) for link in some]
    page, children = addresses.identity(addresses.canonical(line.page)), np.array(ids, np.uint64)
    await guide.store.adopt_links(crawl, page, children, links, guide.clock.now())
