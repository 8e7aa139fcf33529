"""WARC files, as crawlers and archives write them: every HTTP answer is a page, a redirect or a failure."""

from __future__ import annotations

import gzip
import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crawlguide.core.errors import ConfigError, UrlError
from crawlguide.core.urls import canonical, queue
from crawlguide.lab.build import reading
from crawlguide.lab.build.found import Found, FoundLink, FoundPage

if TYPE_CHECKING:
    from pathlib import Path

ENDINGS = (".warc", ".warc.gz")
GZIP, WARC = b"\x1f\x8b", b"WARC/"
HTML = ("text/html", "application/xhtml+xml")


def found(file: Path) -> Found:
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
