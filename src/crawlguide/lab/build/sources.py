"""What sources of a web give, before it is written down."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.core.errors import ConfigError, UrlError
from crawlguide.core.types import KnownLink, KnownPage, KnownUrl
from crawlguide.core.urls import canonical, queue
from crawlguide.guide.crawl.transfer import DefinitionLine
from crawlguide.lab.build import reading

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@dataclass(frozen=True)
class FoundLink:
    """A link in its absolute form; `kind` is body or redirect."""

    url: str
    anchor: str
    kind: str = "body"


@dataclass(frozen=True)
class FoundPage:
    """One answer of the web."""

    url: str
    status: int = 200
    title: str = ""
    text: str = ""
    language: str = ""
    size: int = 0
    links: tuple[FoundLink, ...] = ()
    redirect: str | None = None
    label: str = ""  # where it came from, for people


@dataclass
class Found:
    """All that the sources gave: pages, where a crawl may begin, and what was relevant to whom."""

    pages: list[FoundPage] = field(default_factory=list)
    homes: list[str] = field(default_factory=list)
    relevant: dict[str, set[str]] = field(default_factory=dict)
    skipped: int = 0  # what could not be read

    def add(self, other: Found) -> None:
        self.pages += other.pages
        self.homes += other.homes
        self.skipped += other.skipped
        for name, urls in other.relevant.items():
            self.judge(name, urls)

    def judge(self, name: str, urls: Iterable[str]) -> None:
        self.relevant.setdefault(name, set()).update(urls)


# A crawl of crawlguide's own, out of `crawlguide export`: what was fetched, how it was linked, what was relevant.

EXPORT_ENDINGS = (".ndjson", ".jsonl")
RELEVANT = 0.5


def found_in_export(file: Path) -> Found:
    """What was fetched, failures too. What only waited is a link to the outside: nobody knows what it would show."""
    result, name = Found(), file.stem
    fetched: dict[str, KnownUrl] = {}
    links: dict[str, tuple[FoundLink, ...]] = {}
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        try:
            entry = _read(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise ConfigError(f"{file}: line {number}: expected a line of crawlguide export: {problem}") from None
        if isinstance(entry, DefinitionLine):
            name = entry.definition.goal.topic or entry.crawl
        elif isinstance(entry, KnownPage):
            links[entry.page] = tuple(FoundLink(link.url, link.anchor) for link in _in_order(entry))
        elif entry is not None and entry.status:  # what failed or grows old may wait again: it was fetched all the same
            fetched[entry.url] = entry
    for url, known in fetched.items():
        its = links.get(url, ())
        redirect = its[0].url if its and 300 <= known.status < 400 else None  # told as a link, as crawlers do
        result.pages.append(FoundPage(url, known.status, links=its, redirect=redirect, label=file.name))
    result.homes = [url for url, known in fetched.items() if known.depth == 0]
    told = {url for url, known in fetched.items() if known.relevance is not None and known.relevance >= RELEVANT}
    if told:
        result.judge(name, told)
    return result


def _read(line: bytes) -> DefinitionLine | KnownPage | KnownUrl | None:
    text = line.strip()
    if not text:
        return None
    if text.startswith(b'{"crawl"'):
        return msgspec.json.decode(text, type=DefinitionLine)
    if text.startswith(b'{"page"'):
        return msgspec.json.decode(text, type=KnownPage)
    return msgspec.json.decode(text, type=KnownUrl)


def _in_order(page: KnownPage) -> list[KnownLink]:
    return sorted(page.links, key=lambda link: link.position)


# WARC files, as crawlers and archives write them: every HTTP answer is a page, a redirect or a failure.

WARC_ENDINGS = (".warc", ".warc.gz")
GZIP, WARC = b"\x1f\x8b", b"WARC/"
HTML = ("text/html", "application/xhtml+xml")


def found_in_warc(file: Path) -> Found:
    """The answers of one file; the first page of each host is where a crawl may begin."""
    result, hosts = Found(), set()
    for record in _records(file):
        if record.rec_type != "response" or record.http_headers is None:
            continue
        try:
            page = _page(record, file.name)
        except UrlError:
            page = None
        if page is None:
            result.skipped += 1
            continue
        result.pages.append(page)
        if page.status == 200 and queue(page.url) not in hosts:
            hosts.add(queue(page.url))
            result.homes.append(page.url)
    return result


def _records(file: Path) -> Any:
    try:
        archive: Any = import_module("warcio.archiveiterator")
        problem: Any = import_module("warcio.exceptions").ArchiveLoadFailed
    except ImportError:
        raise ConfigError("reading WARC needs warcio, which is not installed: pip install 'crawlguide[lab]'") from None
    try:
        _check(file)
        with file.open("rb") as stream:
            yield from archive.ArchiveIterator(stream)
    except (problem, OSError, EOFError, zlib.error) as what:
        raise ConfigError(f"{file}: expected a WARC file: {what}") from None


def _check(file: Path) -> None:
    """The reader takes any text for an archive of an older kind."""
    with file.open("rb") as stream:
        packed = stream.read(2) == GZIP
    with gzip.open(file) if packed else file.open("rb") as stream:
        begin = stream.read(len(WARC))
    if begin != WARC:
        raise ConfigError(f"{file}: expected a WARC file, which begins with {WARC!r}, got {begin!r}")


def _page(record: Any, label: str) -> FoundPage | None:
    """None for what is no page: pictures, robots.txt and the like."""
    url = canonical(record.rec_headers.get_header("WARC-Target-URI") or "")
    status = int(record.http_headers.get_statuscode() or 0)
    location = record.http_headers.get_header("Location")
    if 300 <= status < 400 and location:
        target = canonical(location, url)
        return FoundPage(
            url, status, links=(FoundLink(target, "(redirect)", "redirect"),), redirect=target, label=label
        )
    if status >= 400:
        return FoundPage(url, status, label=label)
    kind = (record.http_headers.get_header("Content-Type") or "").partition(";")
    if status != 200 or kind[0].strip().lower() not in HTML:
        return None
    charset = kind[2].lower().partition("charset=")[2].strip(" \"';")
    return reading.read(record.content_stream().read(), url, label, charset)
