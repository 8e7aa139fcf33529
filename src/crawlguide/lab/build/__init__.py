"""Make a recorded web: from folders of HTML, from WARC files, from a crawl that crawlguide has guided."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crawlguide.core.errors import ConfigError
from crawlguide.lab.build import folders, topics, writing
from crawlguide.lab.build import sources as exports
from crawlguide.lab.build import sources as warc
from crawlguide.lab.build.sources import Found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.lab.build.writing import Written

__all__ = ["build"]


def build(out: Path, sources: Sequence[str], rules: Sequence[str] = ()) -> Written:
    """Write a web to the folder `out`. A source is `DIR=URL`, a WARC file, or a file of `crawlguide export`.

    Each rule, `NAME=REGEX`, makes a task; so does the relevance that was told in a crawl. An export goes last: it has
    no texts, so whoever else saw a page says more about it; but it knows where the crawl began.
    """
    writing.check(out)
    looked_for = [topics.parsed(rule) for rule in rules]
    mapped = [folders.parsed(source) for source in sources if _is_folder(source)]
    files = [Path(source) for source in sources if not _is_folder(source)]
    found = folders.found(mapped)
    for file in files:
        if not file.name.endswith(exports.EXPORT_ENDINGS):
            found.add(_read(file))
    crawls = [_read(file) for file in files if file.name.endswith(exports.EXPORT_ENDINGS)]
    if any(crawl.homes for crawl in crawls):
        found.homes = []
    for crawl in crawls:
        found.add(crawl)
    for topic in looked_for:
        found.judge(topic.name, (page.url for page in found.pages if page.status == 200 and topic.fits(page)))
    return writing.written(out, found)


def _is_folder(source: str) -> bool:
    return "=" in source and not Path(source).is_file()


def _read(file: Path) -> Found:
    if not file.name.endswith((*warc.WARC_ENDINGS, *exports.EXPORT_ENDINGS)):
        known = ", ".join((*warc.WARC_ENDINGS, *exports.EXPORT_ENDINGS))
        raise ConfigError(f"{file}: expected DIR=URL, or a file that ends in {known}")
    if not file.is_file():
        raise ConfigError(f"{file}: there is no such file")
    return warc.found_in_warc(file) if file.name.endswith(warc.WARC_ENDINGS) else exports.found_in_export(file)
