"""What came the last time, for a crawl that fetches pages again: whoever has it already need not be sent it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from crawlguide.core.bounded import Bounded
from crawlguide.core.outcomes import is_success
from crawlguide.crawler.fetched import Validators

if TYPE_CHECKING:
    from crawlguide.core.messages import Fetch
    from crawlguide.crawler.lines import PageLine

MOST = 500_000  # copies that are known; of a larger crawl those fetched last
UNCHANGED = 304


class Copy(NamedTuple):
    """How a page was the last time. Where nothing has changed, that is how it is."""

    validators: Validators
    title: str | None
    language: str | None
    content_hash: str | None
    relevance: float | None


class Copies:
    """The last copy of each page. `wanted` is False for a crawl that fetches nothing again: nothing is kept."""

    def __init__(self, *, wanted: bool) -> None:
        self._copies: Bounded[str, Copy] = Bounded(MOST)
        self._wanted = wanted

    def add(self, line: PageLine) -> None:
        """One more line, as it stands in `pages.jsonl`."""
        if self._wanted and (is_success(line.status or 0, line.error or "") or line.status == UNCHANGED):
            said = Validators(line.etag or "", line.last_modified or "")
            self._copies[line.url] = Copy(said, line.title, line.language, line.content_hash, line.relevance)

    def of(self, url: str) -> Copy | None:
        return self._copies.get(url)


def unchanged(line: PageLine, report: Fetch, copy: Copy) -> Fetch:
    """An answer without content stands for the copy: the line says so, and the report, which is returned."""
    line.title, line.language, line.content_hash = copy.title, copy.language, copy.content_hash
    line.etag = line.etag or copy.validators.etag or None
    line.last_modified = line.last_modified or copy.validators.last_modified or None
    return msgspec.structs.replace(
        report,
        title=copy.title,
        language=copy.language,
        content_hash=copy.content_hash,
        relevance=copy.relevance,
    )
