"""What a web can be made of: folders of HTML, files of `crawlguide export`, WARC files."""

from __future__ import annotations

import gzip
import os
import zlib
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

import msgspec

from crawlguide.core.errors import ConfigError, UrlError
from crawlguide.core.extras import installing
from crawlguide.core.types import KnownPage, KnownUrl
from crawlguide.core.urls import canonical, queue
from crawlguide.crawler.folder import CrawlFolder
from crawlguide.guide.crawl.transfer import DefinitionLine
from crawlguide.lab.build.html import SourceLink, SourcePage, read_html

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

HTML_ENDINGS = (".html", ".htm", ".xhtml")
HTML_TYPES = ("text/html", "application/xhtml+xml")
INDEX = "index.html"
EXPORT_ENDINGS = (".ndjson", ".jsonl")
RELEVANT = 0.5  # relevance of a page that an export calls relevant
WARC_ENDINGS = (".warc", ".warc.gz")
GZIP, WARC = b"\x1f\x8b", b"WARC/"


@dataclass
class Collection:
    """All that the sources gave: pages, where a crawl may begin, and what was relevant to whom."""

    pages: list[SourcePage] = field(default_factory=list)
    homes: list[str] = field(default_factory=list)
    relevant: dict[str, set[str]] = field(default_factory=dict)
    skipped: int = 0  # what could not be read

    def add(self, other: Collection) -> None:
        self.pages += other.pages
        self.homes += other.homes
        self.skipped += other.skipped
        for name, urls in other.relevant.items():
            self.judge(name, urls)

    def judge(self, name: str, urls: Iterable[str]) -> None:
        self.relevant.setdefault(name, set()).update(urls)


def files_of(source: str) -> list[str]:
    """The files of a crawl's folder that a web is made of; any other source is itself."""
    crawl = CrawlFolder(Path(source))
    if not crawl.identity.is_file():
        return [source]
    files = [str(file) for file in (crawl.warc, crawl.export) if file.is_file()]
    if not files:
        raise ConfigError(f"{source}: there is nothing of this crawl yet; it is written when it ends")
    return files


def read_file(file: Path) -> Collection:
    """A WARC file or an export, by its ending."""
    if not file.name.endswith((*WARC_ENDINGS, *EXPORT_ENDINGS)):
        endings = ", ".join((*WARC_ENDINGS, *EXPORT_ENDINGS))
        raise ConfigError(f"{file}: expected DIR=URL, or a file that ends in {endings}")
    if not file.is_file():
        raise ConfigError(f"{file}: there is no such file")
    return read_warc(file) if file.name.endswith(WARC_ENDINGS) else read_export(file)


@dataclass(frozen=True)
class Folder:
    """A folder and the address it stands for; the folder without links in its path, the address with its slash."""

    path: Path
    url: str

    def address(self, file: Path) -> str:
        """The URL of a file in this folder."""
        return canonical(self.url + quote(file.relative_to(self.path).as_posix()))


def folder_named(text: str) -> Folder:
    """`DIR=URL`."""
    path, _, url = text.partition("=")
    try:
        address = canonical(url)
    except UrlError as problem:
        raise ConfigError(f"{text}: expected DIR=URL: {problem.message}") from None
    if not Path(path).is_dir():
        raise ConfigError(f"{text}: expected DIR=URL: there is no folder {path}")
    return Folder(Path(path).resolve(), address if address.endswith("/") else address + "/")


def read_folders(folders: Sequence[Folder]) -> Collection:
    """All pages of all folders, with the links between them."""
    result = Collection()
    for folder in folders:
        for file in _files(folder.path):
            url = folder.address(file)
            page = read_html(file.read_bytes(), url, str(folder.path))
            links = [replace(link, url=_link_target(link.url, folder, file, folders)) for link in page.links]
            result.pages.append(replace(page, url=_without_index(url), links=tuple(link for link in links if link.url)))
        result.homes += _homes(folder, result.pages)
    return result


def _files(root: Path) -> Iterator[Path]:
    """Documentation often lies behind symbolic links; a folder is entered once, however many lead there."""
    entered: set[Path] = set()
    for name, folders, files in os.walk(root, followlinks=True):
        place = Path(name)
        if place.resolve() in entered:
            folders.clear()
            continue
        entered.add(place.resolve())
        folders.sort()
        yield from (place / file for file in sorted(files) if file.endswith(HTML_ENDINGS) and (place / file).is_file())


def _link_target(url: str, own: Folder, file: Path, folders: Sequence[Folder]) -> str:
    """A link to a file of this machine, or out of its own folder, is one to the page that the file stands for."""
    if url.startswith("file:"):
        target = Path(unquote(urlsplit(url).path))
    elif url.startswith(own.url) or not url.startswith(_origin(own.url)):
        return _without_index(url)
    else:  # on the same host, above the folder: ../../other-package/html/page.html, as packages link to each other
        target = Path(os.path.normpath(file.parent / unquote(_relative(url, own, file))))
    for place in (target, target.resolve()):
        for folder in folders:
            if place.is_relative_to(folder.path):
                return _without_index(folder.address(place))
    return "" if url.startswith("file:") else _without_index(url)


def _relative(url: str, own: Folder, file: Path) -> str:
    """How one gets from the address of the file to the URL; the same steps lead from the file to its target."""
    return os.path.relpath(urlsplit(url).path, os.path.dirname(urlsplit(own.address(file)).path))  # noqa: PTH120


def _origin(url: str) -> str:
    return url[: url.index("/", 8) + 1]


def _without_index(url: str) -> str:
    """A folder's index is the folder, as web servers have it."""
    return url.removesuffix(INDEX) if url.endswith("/" + INDEX) else url


def _homes(folder: Folder, pages: Sequence[SourcePage]) -> list[str]:
    """The folder's own index, or else its page with most links."""
    its = [page for page in pages if page.url.startswith(folder.url)]
    if any(page.url == folder.url for page in its):
        return [folder.url]
    return [max(its, key=lambda page: len(page.links)).url] if its else []


def read_export(file: Path) -> Collection:
    """What was fetched, failures too. What only waited is a link to the outside: nobody knows what it would show."""
    result, name = Collection(), file.stem
    fetched: dict[str, KnownUrl] = {}
    links: dict[str, tuple[SourceLink, ...]] = {}
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        try:
            entry = _export_line(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise ConfigError(f"{file}: line {number}: expected a line of crawlguide export: {problem}") from None
        if isinstance(entry, DefinitionLine):
            name = entry.definition.goal.topic or entry.crawl
        elif isinstance(entry, KnownPage):
            links[entry.page] = tuple(
                SourceLink(link.url, link.anchor) for link in sorted(entry.links, key=lambda link: link.position)
            )
        elif entry is not None and entry.status:  # what failed or grows old may wait again: it was fetched all the same
            fetched[entry.url] = entry
    for url, known in fetched.items():
        its = links.get(url, ())
        redirect = its[0].url if its and 300 <= known.status < 400 else None  # told as a link, as crawlers do
        result.pages.append(SourcePage(url, known.status, links=its, redirect=redirect, label=file.name))
    result.homes = [url for url, known in fetched.items() if known.depth == 0]
    relevant = {url for url, known in fetched.items() if known.relevance is not None and known.relevance >= RELEVANT}
    if relevant:
        result.judge(name, relevant)
    return result


def _export_line(line: bytes) -> DefinitionLine | KnownPage | KnownUrl | None:
    text = line.strip()
    if not text:
        return None
    if text.startswith(b'{"crawl"'):
        return msgspec.json.decode(text, type=DefinitionLine)
    if text.startswith(b'{"page"'):
        return msgspec.json.decode(text, type=KnownPage)
    return msgspec.json.decode(text, type=KnownUrl)


def read_warc(file: Path) -> Collection:
    """The answers of one file; the first page of each host is where a crawl may begin."""
    result, hosts = Collection(), set()
    for record in _warc_records(file):
        if record.rec_type != "response" or record.http_headers is None:
            continue
        try:
            page = _warc_page(record, file.name)
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


def _warc_records(file: Path) -> Any:
    try:
        archive: Any = import_module("warcio.archiveiterator")
        problem: Any = import_module("warcio.exceptions").ArchiveLoadFailed
    except ImportError:
        raise ConfigError(f"reading WARC needs warcio, which is not installed: {installing('lab')}") from None
    try:
        _check_is_warc(file)
        with file.open("rb") as stream:
            yield from archive.ArchiveIterator(stream)
    except (problem, OSError, EOFError, zlib.error) as what:
        raise ConfigError(f"{file}: expected a WARC file: {what}") from None


def _check_is_warc(file: Path) -> None:
    """The reader takes any text for an archive of an older kind."""
    with file.open("rb") as stream:
        packed = stream.read(2) == GZIP
    with gzip.open(file) if packed else file.open("rb") as stream:
        begin = stream.read(len(WARC))
    if begin != WARC:
        raise ConfigError(f"{file}: expected a WARC file, which begins with {WARC!r}, got {begin!r}")


def _warc_page(record: Any, label: str) -> SourcePage | None:
    """None for what is no page: pictures, robots.txt and the like."""
    url = canonical(record.rec_headers.get_header("WARC-Target-URI") or "")
    status = int(record.http_headers.get_statuscode() or 0)
    location = record.http_headers.get_header("Location")
    if 300 <= status < 400 and location:
        target = canonical(location, url)
        return SourcePage(
            url, status, links=(SourceLink(target, "(redirect)", "redirect"),), redirect=target, label=label
        )
    if status >= 400:
        return SourcePage(url, status, label=label)
    kind = (record.http_headers.get_header("Content-Type") or "").partition(";")
    if status != 200 or kind[0].strip().lower() not in HTML_TYPES:
        return None
    charset = kind[2].lower().partition("charset=")[2].strip(" \"';")
    return read_html(record.content_stream().read(), url, label, charset)
