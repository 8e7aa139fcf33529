"""A crawl of crawlguide's own, out of `crawlguide export`: what was fetched, how it was linked, what was relevant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from crawlguide.core.errors import ConfigError
from crawlguide.core.types import KnownLink, KnownPage, KnownUrl
from crawlguide.guide.transfer import DefinitionLine
from crawlguide.lab.build.found import Found, FoundLink, FoundPage

if TYPE_CHECKING:
    from pathlib import Path

ENDINGS = (".ndjson", ".jsonl")
RELEVANT = 0.5


def found(file: Path) -> Found:
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
