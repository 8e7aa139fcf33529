"""What was fetched and is not in the outputs for good: written before the guide is told, so that nothing is lost.

The journal begins with how long the outputs were when it was begun. After it come the requests since then, each with
all that was told of it, and what the guide said to them. Whoever finds it after a crash cuts the outputs back to the
lengths at its head, tells again what has no answer (the guide knows it again by its time) and writes the rest anew.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from crawlguide.core.errors import DataError
from crawlguide.core.messages import Fetch
from crawlguide.crawler.lines import PageLine

if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import FileIO
    from pathlib import Path


class Lengths(Struct, frozen=True, tag="lengths", tag_field="what"):
    """Of the outputs when the journal was begun."""

    pages: int = 0  # bytes
    warc: int = 0  # bytes
    link_parts: int = 0
    numbers: int = 0  # requests so far


class Entry(Struct, frozen=True, tag="request", tag_field="what"):
    """One request, as it will stand in the outputs, and as the guide is told."""

    number: int
    line: PageLine
    report: Fetch
    warc: int  # bytes of the WARC with its record


class Word(Struct, frozen=True, tag="word", tag_field="what"):
    """What the guide said to a request."""

    number: int
    relevance: float | None = None


@dataclass
class Kept:
    """What a journal holds."""

    lengths: Lengths | None = None  # None: there is no journal
    entries: dict[int, Entry] = field(default_factory=dict)
    words: list[Word] = field(default_factory=list)

    @property
    def warc(self) -> int:
        """Up to here every record of the WARC belongs to a request that is known."""
        return max([self.lengths.warc if self.lengths else 0, *(entry.warc for entry in self.entries.values())])

    @property
    def unanswered(self) -> list[Entry]:
        answered = {word.number for word in self.words}
        return [entry for number, entry in self.entries.items() if number not in answered]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Lengths | Entry | Word).decode


def read(path: Path) -> Kept:
    """A last line that is not whole was being written when the end came: nobody was told of it."""
    kept = Kept()
    if not path.exists():
        return kept
    *lines, _ = path.read_bytes().split(b"\n")
    for number, text in enumerate(lines, 1):
        try:
            found = _decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
            raise DataError(f"{path}: line {number}: expected a line of the crawler's journal: {wrong}") from None
        if isinstance(found, Entry):
            kept.entries[found.number] = found
        elif isinstance(found, Word):
            kept.words.append(found)
        else:
            kept.lengths = found
    return kept


class Journal:
    """Appends in one write each. What the guide says waits for the next request: to hear it again does no harm."""

    def __init__(self, path: Path, lengths: Lengths, entries: Iterable[Entry] = ()) -> None:
        self.path = path
        new = path.with_suffix(".new")
        with new.open("wb") as file:
            file.write(b"".join(_encode(one) + b"\n" for one in (lengths, *entries)))
        new.replace(path)
        self._file = path.open("ab", buffering=0)
        self._words: list[Word] = []
        self.size = path.stat().st_size

    def request(self, entry: Entry) -> None:
        self._write([*self._words, entry])
        self._words = []

    def word(self, word: Word) -> None:
        self._words.append(word)

    def _write(self, found: Iterable[Entry | Word]) -> None:
        text = b"".join(_encode(one) + b"\n" for one in found)
        append(self._file, text)
        self.size += len(text)

    def close(self) -> None:
        if self._words:
            self._write(self._words)
            self._words = []
        self._file.close()

    def abandon(self) -> None:
        """Close it without what the guide said last: to hear it again does no harm."""
        self._file.close()


def append(file: FileIO, text: bytes) -> None:
    """All of it, however few bytes the system takes at once; or nothing, where the disk is full in the middle."""
    length, rest = os.fstat(file.fileno()).st_size, memoryview(text)
    try:
        while rest:
            rest = rest[file.write(rest) or 0 :]
    except OSError:
        with suppress(OSError):  # others may write to it yet, and half a line would spoil theirs
            os.ftruncate(file.fileno(), length)
        raise


def size(path: Path) -> int:
    """In bytes; 0 for a file that is not there."""
    return path.stat().st_size if path.exists() else 0


def cut(path: Path, length: int) -> None:
    """Cut a file back to its first bytes."""
    if size(path) > length:
        os.truncate(path, length)
