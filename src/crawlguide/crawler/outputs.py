"""What a crawl leaves in its folder: pages, links, the answers themselves; in step with what the guide knows.

A request goes into the WARC and the journal before the guide is told of it, and into `pages.jsonl` when the guide has
it. So whatever moment the end comes at, all that the guide knows is in the outputs or can be written into them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from crawlguide.crawler import journal
from crawlguide.crawler.journal import Entry, Journal, Kept, Lengths, Word
from crawlguide.crawler.tables import Tables, page_lines, whole_lines
from crawlguide.crawler.warc import Warc, whole_records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from crawlguide.core.messages import Fetch
    from crawlguide.crawler.fetched import Fetched
    from crawlguide.crawler.folder import CrawlFolder
    from crawlguide.crawler.lines import PageLine

MOST_ENTRIES, MOST_BYTES = 1_000, 32 << 20  # of a journal; then what was answered leaves it
_encode = msgspec.json.Encoder().encode


class Outputs:
    """The open files of one crawl. Made over what an earlier run has left: that is brought in order first.

    Each of `listeners` is given every line once: those of earlier runs, then each that the guide has answered.
    """

    def __init__(
        self, folder: CrawlFolder, listeners: Sequence[Callable[[PageLine], object]], *, warc: bool, parquet: bool
    ) -> None:
        self._folder, self._listeners = folder, listeners
        self._tables = Tables(folder.path, folder.parts) if parquet else None
        self.missing: list[str] = []  # what earlier runs have left and somebody took away, in words
        kept = journal.read(folder.journal)
        lengths = self._mended(kept)
        for line in page_lines(folder.pages):
            self._say(line)
        self._warc = Warc(folder.warc) if warc else None
        self._pages = folder.pages.open("ab", buffering=0)
        self._unwritten: list[bytes] = []  # lines of it; a file that buffers would write them whenever it is collected
        self._parts, self._number = lengths.link_parts, max([lengths.numbers, *kept.entries])
        self._waiting: dict[int, Entry] = {}
        self._told: list[Fetch] = []  # whose links are not in a part
        self._journal = self._taken_over(kept)

    def _mended(self, kept: Kept) -> Lengths:
        """Cut back what a killed run was writing. Of a file that others have shortened, what is whole stays."""
        folder, lengths = self._folder, kept.lengths or Lengths()
        self._mend(folder.pages, lengths.pages if kept.lengths else None, whole_lines)
        self._mend(folder.warc, kept.warc if kept.lengths else None, whole_records)
        if self._tables is None:
            return lengths
        parts = lengths.link_parts if kept.lengths else self._tables.last_part()
        self.missing += self._tables.mend(parts)
        return msgspec.structs.replace(lengths, link_parts=parts)

    def _mend(self, path: Path, length: int | None, whole: Callable[[Path], int]) -> None:
        """`length` is what the journal says; None: there is no journal, and all that is whole counts."""
        if length is not None and journal.size(path) >= length:
            journal.cut(path, length)
            return
        if length is not None:
            self.missing.append(f"{path} is shorter than this crawl left it: it goes on with what is there")
        if path.exists():
            journal.cut(path, whole(path))

    def _taken_over(self, kept: Kept) -> Journal:
        """What was answered goes into the outputs now, what was not is to be told again."""
        self._waiting = dict(kept.entries)
        for word in kept.words:
            self._settle(word)
        return self._begun()

    @property
    def unanswered(self) -> list[Entry]:
        """What the guide has not answered, in the order in which it was fetched."""
        return list(self._waiting.values())

    def add(self, line: PageLine, fetched: Fetched, report: Fetch) -> int:
        """A request, before the guide is told of it; returns its number."""
        if self._warc is not None and (place := self._warc.add(fetched, line.fetched)):
            line.warc_offset, line.warc_length = place
        self._number += 1
        entry = Entry(self._number, line, report, self._warc.length if self._warc else 0)
        self._journal.request(entry)
        self._waiting[entry.number] = entry
        return entry.number

    def answered(self, number: int, relevance: float | None) -> None:
        """The guide has it."""
        word = Word(number, relevance)
        self._journal.word(word)
        self._settle(word)
        if len(self._told) >= MOST_ENTRIES or self._journal.size > MOST_BYTES:
            self.save()

    def _settle(self, word: Word) -> None:
        entry = self._waiting.pop(word.number, None)
        if entry is None:
            return
        entry.line.relevance = word.relevance
        self._unwritten.append(_encode(entry.line) + b"\n")
        self._told.append(entry.report)
        self._say(entry.line)

    def _say(self, line: PageLine) -> None:
        for listener in self._listeners:
            listener(line)

    def flush(self) -> None:
        """For those who read `pages.jsonl` while it grows."""
        journal.append(self._pages, b"".join(self._unwritten))
        self._unwritten = []

    def save(self) -> None:
        """Begin another journal, without what is in the outputs for good."""
        self._journal.close()
        self._journal = self._begun()

    def _begun(self) -> Journal:
        if self._told and self._tables is not None:
            self._parts += 1
            self._tables.write_part(self._parts, self._told)
        self._told = []
        self.flush()
        warc = self._warc.length if self._warc else journal.size(self._folder.warc)  # of earlier runs
        lengths = Lengths(self._pages.tell(), warc, self._parts, self._number)
        return Journal(self._folder.journal, lengths, self._waiting.values())

    def abandon(self) -> None:
        """Close all files as they are: what is not written is in the journal, or was not told."""
        self._journal.abandon()
        self._pages.close()
        if self._warc is not None:
            self._warc.close()

    def close(self) -> None:
        """Save, and make the tables."""
        self.save()
        self._journal.close()
        self.abandon()
        if self._tables is not None:
            self._tables.join_links(self._parts)
            self._tables.write_pages(self._folder.pages)
