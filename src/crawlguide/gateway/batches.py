"""A file of URLs or of an export, cut into batches that a place takes at once."""

from __future__ import annotations

import codecs
import io
import sys
import zlib
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

import msgspec

from crawlguide.core.errors import DataError
from crawlguide.gateway.readers import Skipped
from crawlguide.gateway.readers._blocks import STANDARD_INPUT, blocks
from crawlguide.gateway.readers.detect import format_of
from crawlguide.guide.transfer import AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from crawlguide.core.messages import SeedMessage

Item = TypeVar("Item")
AUTO, LINES = "auto", "ndjson"
AROUND_BYTES = 64  # what stands around the seeds in a message
_GZIP, _GZIP_ALONE = b"\x1f\x8b", 31
_BLANK = b" \t\r\n" + codecs.BOM_UTF8


def kind_of(path: Path, given: str) -> str:
    """The format by its name, found out where none was given."""
    if given != AUTO:
        return given
    return _piped_kind() if path == STANDARD_INPUT else format_of(path)


def lines(path: Path, most_bytes: int) -> Iterator[list[bytes | Skipped]]:
    """Batches of lines without their ends; one that is too long to be taken at all leaves its reason in its place."""
    longest = most_bytes - 1

    def sized() -> Iterator[tuple[bytes | Skipped, int]]:
        for number, line in enumerate(_whole_lines(path, longest), 1):
            if line is None:
                yield Skipped(f"line {number}", f"expected at most {longest} bytes, got more"), 1
            else:
                yield line, len(line) + 1

    return _grouped(sized(), most_bytes)


def seeds(path: Path, kind: str, most_bytes: int) -> Iterator[list[SeedMessage | Skipped]]:
    """Batches of what the reader of this format finds."""
    found: Iterable[SeedMessage | Skipped] = import_module(f"crawlguide.gateway.readers.{kind}").read(path)
    sized = ((one, 0 if isinstance(one, Skipped) else len(msgspec.json.encode(one)) + 1) for one in found)
    return _grouped(sized, most_bytes - AROUND_BYTES)


def line_count(path: Path, kind: str) -> int | None:
    """How many lines there are to come, where counting them first is quick and possible."""
    if path == STANDARD_INPUT or kind not in {LINES, "urls"}:
        return None
    return sum(block.count(b"\n") for block in blocks(path))


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
