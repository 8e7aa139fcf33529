"""A crawl out of a place into a file, and back: what the commands `export` and `import` do.

No file is held whole, whatever its size. An import goes by batches: one that was taken is on stable storage, and taking
it again changes nothing, so whoever was stopped in the middle begins again.
"""

from __future__ import annotations

import codecs
import io
import os
import signal
import sys
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import msgspec

from crawlguide.core import stable
from crawlguide.core.errors import ConfigError, CrawlGuideError, DataError
from crawlguide.gateway.readers import Skipped
from crawlguide.gateway.readers._bytes import STANDARD_INPUT, blocks
from crawlguide.gateway.readers.detect import format_of
from crawlguide.guide.crawl.transfer import AT_ONCE, Imported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import FrameType

    from crawlguide.core.messages import SeedMessage
    from crawlguide.gateway.places import Place

Item = TypeVar("Item")
AUTO, LINES = "auto", "ndjson"
STANDARD_OUTPUT = Path("-")
REASONS = 10
AROUND_BYTES = 64  # what stands around the seeds in a message
_GZIP, _GZIP_ALONE = b"\x1f\x8b", 31
_BLANK = b" \t\r\n" + codecs.BOM_UTF8


def give(place: Place, crawl: str, file: BinaryIO) -> int:
    """Export; returns how many lines were written."""
    count = 0
    for line in place.exported(crawl):
        file.write(line + b"\n")
        count += 1
    return count


@contextmanager
def written(output: Path) -> Iterator[BinaryIO]:
    """A file that gets its name when it is whole; `-`, a pipe or a device is written as it comes."""
    try:
        if output == STANDARD_OUTPUT or (output.exists() and not output.is_file()):
            with _as_it_comes(output) as file:
                yield file
        else:
            with _renamed_at_the_end(output.resolve()) as file:
                yield file
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as problem:
        raise ConfigError(f"output: cannot write {output}: {problem.strerror}") from None
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise CrawlGuideError(f"output: cannot write {output}: {problem.strerror}") from None


@contextmanager
def _as_it_comes(output: Path) -> Iterator[BinaryIO]:
    """Of the standard output a second handle, so that what could not be written is not tried again at the end."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") if output == STANDARD_OUTPUT else output.open("wb") as file:
        yield file


@contextmanager
def _renamed_at_the_end(output: Path) -> Iterator[BinaryIO]:
    half = output.with_name(output.name + ".half")
    try:
        with half.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        stable.put_in_place(half, output)
    finally:
        half.unlink(missing_ok=True)


@dataclass(frozen=True)
class Source:
    """What is imported, and as which crawl."""

    path: Path
    kind: str
    crawl: str


@dataclass
class Tally:
    """How far an import has come. Of the reasons only the first are kept."""

    read: int = 0
    new: int = 0
    skipped: int = 0
    reasons: list[str] = field(default_factory=list)

    def add(self, done: Imported) -> None:
        self.read += done.lines + done.skipped_lines
        self.new += done.urls
        self.skipped += done.skipped_lines
        self.reasons += done.skipped[: REASONS - len(self.reasons)]

    def __str__(self) -> str:
        return f"{self.read} read, {self.new} new, {self.skipped} skipped"


def take(place: Place, source: Source, tally: Tally, heard: Callable[[Tally], None]) -> None:
    """Import, saying after each batch how far it has come. Ctrl-C ends it between two batches."""
    for step in _steps(place, source):
        with uninterrupted():
            tally.add(step())
        heard(tally)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C is heard when the block has ended; a second one, by somebody who will not wait, at once."""
    heard: list[int] = []

    def hear(number: int, _: FrameType | None) -> None:
        heard.append(number)
        if len(heard) > 1:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt


def _steps(place: Place, source: Source) -> Iterator[Callable[[], Imported]]:
    """Each batch as a step still to be done."""
    if source.kind != LINES:
        for found in seed_batches(source.path, source.kind, place.most_bytes):
            yield partial(_take_seeds, place, source.crawl, found)
        return
    first = 1
    for lines in line_batches(source.path, place.most_bytes):
        yield partial(_take_lines, place, source.crawl, lines, first)
        first += len(lines)


def _take_lines(place: Place, crawl: str, batch: Sequence[bytes | Skipped], first: int) -> Imported:
    done = place.imported(crawl, [b"" if isinstance(one, Skipped) else one for one in batch], first)
    return replace(done, skipped=_reasons(batch) + done.skipped)


def _take_seeds(place: Place, crawl: str, batch: Sequence[SeedMessage | Skipped]) -> Imported:
    seeds = [one for one in batch if not isinstance(one, Skipped)]
    return Imported(len(seeds), place.seeded(crawl, seeds) if seeds else 0, _reasons(batch))


def _reasons(batch: Sequence[object]) -> tuple[str, ...]:
    return tuple(f"{one.where}: {one.why}" for one in batch if isinstance(one, Skipped))


def kind_of(path: Path, given: str) -> str:
    """The format by its name, found out where none was given."""
    if given != AUTO:
        return given
    return _piped_kind() if path == STANDARD_INPUT else format_of(path)


def _piped_kind() -> str:
    """By what the standard input begins with: only a look ahead, since it cannot be read twice."""
    given = sys.stdin.buffer
    head = given.peek(1) if isinstance(given, io.BufferedReader) else b""
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(_GZIP_ALONE).decompress(head, 256)
        except zlib.error as wrong:
            raise DataError(f"-: byte 0: cannot be read: {wrong}") from None
    return {b"{": LINES, b"<": "sitemap"}.get(head.lstrip(_BLANK)[:1], "urls")


def line_count(path: Path, kind: str) -> int | None:
    """How many lines there are to come, where counting them first is quick and possible."""
    if path == STANDARD_INPUT or kind not in {LINES, "urls"}:
        return None
    return sum(block.count(b"\n") for block in blocks(path))


def line_batches(path: Path, most_bytes: int) -> Iterator[list[bytes | Skipped]]:
    """Batches of lines without their ends; one that is too long to be taken at all leaves its reason in its place."""
    longest = most_bytes - 1

    def sized() -> Iterator[tuple[bytes | Skipped, int]]:
        for number, line in enumerate(_whole_lines(path, longest), 1):
            if line is None and number == 1:  # of an export it is the definition, without which nothing should begin
                raise DataError(f"line 1: expected at most {longest} bytes, got more")
            if line is None:
                yield Skipped(f"line {number}", f"expected at most {longest} bytes, got more"), 1
            else:
                yield line, len(line) + 1

    return _grouped(sized(), most_bytes)


def seed_batches(path: Path, kind: str, most_bytes: int) -> Iterator[list[SeedMessage | Skipped]]:
    """Batches of what the reader of this format finds."""
    found: Iterable[SeedMessage | Skipped] = import_module(f"crawlguide.gateway.readers.{kind}").read(path)
    sized = ((one, 0 if isinstance(one, Skipped) else len(msgspec.json.encode(one)) + 1) for one in found)
    return _grouped(sized, most_bytes - AROUND_BYTES)


def _grouped(items: Iterable[tuple[Item, int]], most_bytes: int) -> Iterator[list[Item]]:
    """Lists of at most so many items and bytes. What stands before a damage in a file is still handed out."""
    batch: list[Item] = []
    size = 0
    try:
        for item, item_bytes in items:
            if len(batch) == AT_ONCE or (batch and size + item_bytes > most_bytes):
                yield batch
                batch, size = [], 0
            batch.append(item)
            size += item_bytes
    except DataError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _whole_lines(path: Path, longest: int) -> Iterator[bytes | None]:
    """Each line; None for one that is too long, of which no more is held than that."""
    pieces: list[bytes] = []
    size = 0
    for number, block in enumerate(blocks(path)):
        *ends, rest = (block if number else block.removeprefix(codecs.BOM_UTF8)).split(b"\n")
        for end in ends:
            yield b"".join([*pieces, end]) if size + len(end) <= longest else None
            pieces, size = [], 0
        size += len(rest)
        pieces = [*pieces, rest] if size <= longest else []
    if size:
        yield b"".join(pieces) if size <= longest else None
