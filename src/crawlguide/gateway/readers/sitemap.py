"""A sitemap in XML (https://www.sitemaps.org/protocol.html), plain or gzipped. Nothing is fetched from here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from defusedxml.ElementTree import XMLParser

from crawlguide.core.errors import DataError
from crawlguide.core.messages import SeedMessage
from crawlguide.gateway.readers import Skipped, usable
from crawlguide.gateway.readers._bytes import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from crawlguide.gateway.readers._bytes import Held

MAX_BYTES = 50 * 1024 * 1024
MAX_ENTRIES = 50_000
MAX_TEXT = 16 * 1024
MAX_LASTMOD = 64
# Expat before 2.6 scans an unfinished tag or comment again with every block (CVE-2023-52425): bounded here instead.
MAX_UNFINISHED_BYTES = 1024 * 1024
MAX_DEPTH, MAX_NAMES = 32, 1_000  # the parser remembers every open tag, and every name it has met

_ITEMS = {"urlset": "url", "sitemapindex": "sitemap"}
_FIELDS = ("loc", "priority", "lastmod", "changefreq")


def read(path: Path) -> Iterator[SeedMessage | Skipped]:
    """The sitemap's entries as seeds. Raises `DataError` for other XML, for a DTD or entities, and over a limit."""
    for number, entry in enumerate(entries(path), 1):
        yield _seed(entry, f"entry {number}")


def entries(path: Path | Held) -> Iterator[Entry]:
    """The entries as they are, pages and other sitemaps. Raises `DataError` as `read` does."""
    for number, entry in enumerate(_entries(path), 1):
        if number > MAX_ENTRIES:
            raise DataError(f"{path}: entry {number}: expected at most {MAX_ENTRIES} entries in a sitemap")
        yield entry


@dataclass
class Entry:
    """What one `<url>` or `<sitemap>` says, each text cut where it is too long anyway."""

    nested: bool
    texts: dict[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        return self.texts.get(name, "").strip()


def _seed(entry: Entry, where: str) -> SeedMessage | Skipped:
    url, lastmod = entry.text("loc"), entry.text("lastmod")
    if entry.nested:
        return Skipped(where, f"nested sitemaps are not fetched here: {url[:200]!r}")
    if not url:
        return Skipped(where, "expected a <loc>, got none")
    if len(url) > MAX_TEXT:
        return Skipped(where, f"expected a <loc> of at most {MAX_TEXT} characters, got more")
    metadata = {"lastmod": lastmod} if 0 < len(lastmod) <= MAX_LASTMOD else None
    return usable(SeedMessage(url, _priority(entry.text("priority")), metadata=metadata), where)


def _priority(text: str) -> float | None:
    """A priority that is none is left out: the URL it came with is worth more."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number <= 1 else None


def _entries(path: Path | Held) -> Iterator[Entry]:
    heard = Listener()
    parser = XMLParser(target=heard, forbid_dtd=True)
    try:
        for block in _bounded(path, parser):
            parser.feed(block)
            yield from heard.taken()
        parser.close()
        yield from heard.taken()
    except (ParseError, ValueError, LookupError) as wrong:  # ill-formed; a DTD or an entity; an unknown encoding
        line = parser.parser.CurrentLineNumber
        raise DataError(f"{path}: line {line}: cannot be read as a sitemap: {wrong}") from wrong


def _bounded(path: Path | Held, parser: XMLParser) -> Iterator[bytes]:
    size = 0
    for block in blocks(path):
        size += len(block)
        if size > MAX_BYTES:
            raise DataError(f"{path}: byte {MAX_BYTES}: expected a sitemap of at most {MAX_BYTES} bytes, unpacked")
        yield block
        if size - parser.parser.CurrentByteIndex > MAX_UNFINISHED_BYTES:
            raise ValueError(f"expected tags and comments of at most {MAX_UNFINISHED_BYTES} bytes")


@dataclass
class Listener:
    """Hears tags and text as the parser meets them; keeps the entries that are complete, and no tree."""

    depth: int = 0
    namespace: str = ""
    item: str = ""
    open_field: str | None = None
    names: set[str] = field(default_factory=set)
    entry: Entry = field(default_factory=lambda: Entry(nested=False))
    complete: list[Entry] = field(default_factory=list)

    def taken(self) -> list[Entry]:
        taken, self.complete = self.complete, []
        return taken

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.depth += 1
        self._check(tag, attributes)
        if self.depth == 1:
            self._open_root(tag)
        elif self.depth == 2:
            self.entry = Entry(nested=self.item == "sitemap")
        elif self.depth == 3:
            self._open_field(tag)

    def data(self, text: str) -> None:
        if self.open_field and len(self.entry.texts[self.open_field]) <= MAX_TEXT:
            self.entry.texts[self.open_field] += text

    def end(self, tag: str) -> None:
        if self.depth == 2 and tag == self.namespace + self.item:
            self.complete.append(self.entry)
        elif self.depth == 3:
            self.open_field = None
        self.depth -= 1

    def _check(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.names.add(tag)
        self.names.update(attributes)
        if self.depth > MAX_DEPTH or len(self.names) > MAX_NAMES:
            raise ValueError(f"expected at most {MAX_DEPTH} levels and {MAX_NAMES} names of tags and attributes")

    def _open_root(self, tag: str) -> None:
        brace = tag.rfind("}") + 1
        self.namespace, name = tag[:brace], tag[brace:]
        if name not in _ITEMS:
            raise ValueError(f"expected <urlset> or <sitemapindex>, got <{name[:80]}>")
        self.item = _ITEMS[name]

    def _open_field(self, tag: str) -> None:
        """Only names of the sitemap's own namespace: images and videos bring a `loc` of theirs."""
        name = tag.removeprefix(self.namespace)
        if name in _FIELDS:
            self.open_field = name
            self.entry.texts[name] = ""
