"""Make a recorded web: from folders of HTML, from WARC files, from a crawl that crawlguide has guided."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crawlguide.core.errors import ConfigError
from crawlguide.lab.build import sources as from_sources
from crawlguide.lab.build import writing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.lab.build.html import SourcePage
    from crawlguide.lab.build.writing import Written

OFTEN = 3  # a word in passing does not make a page


def build(out: Path, sources: Sequence[str], rules: Sequence[str] = ()) -> Written:
    """Write a web to the folder `out`. A source is `DIR=URL`, a WARC file, a file of `crawlguide export`, or the folder
    of `crawlguide crawl`, which holds one of each.

    Each rule, `NAME=REGEX`, makes a task; so does the relevance that was told in a crawl. An export goes last: it has
    no texts, so whoever else saw a page says more about it; but it knows where the crawl began.
    """
    writing.check(out)
    sources = [file for source in sources for file in from_sources.files_of(source)]
    topics = [topic_rule(rule) for rule in rules]
    folders = [from_sources.folder_named(source) for source in sources if _is_folder(source)]
    files = [Path(source) for source in sources if not _is_folder(source)]
    collection = from_sources.read_folders(folders)
    for file in files:
        if not file.name.endswith(from_sources.EXPORT_ENDINGS):
            collection.add(from_sources.read_file(file))
    exports = [from_sources.read_file(file) for file in files if file.name.endswith(from_sources.EXPORT_ENDINGS)]
    if any(export.homes for export in exports):
        collection.homes = []
    for export in exports:
        collection.add(export)
    for topic in topics:
        fitting = (page.url for page in collection.pages if page.status == 200 and topic.fits(page))
        collection.judge(topic.name, fitting)
    return writing.written(out, collection)


def _is_folder(source: str) -> bool:
    return "=" in source and not Path(source).is_file()


@dataclass(frozen=True)
class TopicRule:
    """A page is on the topic if its title or its address says so, or its text says so three times."""

    name: str
    rule: re.Pattern[str]

    def fits(self, page: SourcePage) -> bool:
        if self.rule.search(page.title) or self.rule.search(page.url):
            return True
        return sum(1 for _, _ in zip(range(OFTEN), self.rule.finditer(page.text), strict=False)) == OFTEN


def topic_rule(text: str) -> TopicRule:
    """`NAME=REGEX`; capital or small letters are the same."""
    name, _, rule = text.partition("=")
    if not name or not rule:
        raise ConfigError(f"topic: expected NAME=REGEX, got {text!r}")
    try:
        return TopicRule(name, re.compile(rule, re.IGNORECASE))
    except re.error as problem:
        raise ConfigError(f"topic: {name}: expected a regular expression: {problem}, got {rule!r}") from None
