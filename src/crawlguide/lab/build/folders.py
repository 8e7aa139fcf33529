"""Folders of HTML as the web they once were: `/usr/share/doc/python3/html=https://docs.python.org/3/`."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from crawlguide.core.errors import ConfigError, UrlError
from crawlguide.core.urls import canonical
from crawlguide.lab.build import reading
from crawlguide.lab.build.sources import Found, FoundLink, FoundPage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ENDINGS = (".html", ".htm", ".xhtml")
INDEX = "index.html"


@dataclass(frozen=True)
class Folder:
    """A folder and the address it stands for; the folder without links in its path, the address with its slash."""

    path: Path
    url: str

    def address(self, file: Path) -> str:
        """The URL of a file in this folder."""
        return canonical(self.url + quote(file.relative_to(self.path).as_posix()))


def parsed(text: str) -> Folder:
    """`DIR=URL`."""
    path, _, url = text.partition("=")
    try:
        address = canonical(url)
    except UrlError as problem:
        raise ConfigError(f"{text}: expected DIR=URL: {problem.message}") from None
    if not Path(path).is_dir():
        raise ConfigError(f"{text}: expected DIR=URL: there is no folder {path}")
    return Folder(Path(path).resolve(), address if address.endswith("/") else address + "/")


def found(folders: Sequence[Folder]) -> Found:
    """All pages of all folders, with the links between them."""
    result = Found()
    for folder in folders:
        for file in _files(folder.path):
            url = folder.address(file)
            page = reading.read(file.read_bytes(), url, str(folder.path))
            links = [replace(link, url=_mapped(link.url, folder, file, folders)) for link in page.links]
            result.pages.append(replace(page, url=_plain(url), links=tuple(_kept(links))))
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
        yield from (place / file for file in sorted(files) if file.endswith(ENDINGS) and (place / file).is_file())


def _mapped(url: str, own: Folder, file: Path, folders: Sequence[Folder]) -> str:
    """A link to a file of this machine, or out of its own folder, is one to the page that the file stands for."""
    if url.startswith("file:"):
        target = Path(unquote(urlsplit(url).path))
    elif url.startswith(own.url) or not url.startswith(_origin(own.url)):
        return _plain(url)
    else:  # on the same host, above the folder: ../../other-package/html/page.html, as packages link to each other
        target = Path(os.path.normpath(file.parent / unquote(_relative(url, own, file))))
    for place in (target, target.resolve()):
        for folder in folders:
            if place.is_relative_to(folder.path):
                return _plain(folder.address(place))
    return "" if url.startswith("file:") else _plain(url)


def _relative(url: str, own: Folder, file: Path) -> str:
    """How one gets from the address of the file to the URL; the same steps lead from the file to its target."""
    return os.path.relpath(urlsplit(url).path, os.path.dirname(urlsplit(own.address(file)).path))  # noqa: PTH120


def _origin(url: str) -> str:
    return url[: url.index("/", 8) + 1]


def _plain(url: str) -> str:
    """A folder's index is the folder, as web servers have it."""
    return url.removesuffix(INDEX) if url.endswith("/" + INDEX) else url


def _kept(links: list[FoundLink]) -> Iterator[FoundLink]:
    return (link for link in links if link.url)


def _homes(folder: Folder, pages: Sequence[FoundPage]) -> list[str]:
    """The folder's own index, or else its page with most links."""
    its = [page for page in pages if page.url.startswith(folder.url)]
    if any(page.url == folder.url for page in its):
        return [folder.url]
    return [max(its, key=lambda page: len(page.links)).url] if its else []
