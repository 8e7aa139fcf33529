"""A text file with one URL a line; blank lines and lines that start with # say nothing."""

from __future__ import annotations

import codecs
import io
from typing import TYPE_CHECKING

from crawlguide.core.errors import DataError
from crawlguide.core.messages import SeedMessage
from crawlguide.gateway.readers import Skipped, usable
from crawlguide.gateway.readers._bytes import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_LINE_BYTES = 16 * 1024

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read(path: Path) -> Iterator[SeedMessage | Skipped]:
    """The file's lines as seeds, plain or gzipped; `-` is the standard input. Raises `DataError` for UTF-16."""
    for number, line in enumerate(_lines(path), 1):
        url = line.strip()
        if url and not url.startswith("#"):
            yield _seed(url, f"line {number}")


def _seed(url: str, where: str) -> SeedMessage | Skipped:
    try:
        size = len(url.encode())
    except UnicodeEncodeError:  # `surrogateescape` has marked bytes that are not UTF-8
        return Skipped(where, "expected UTF-8, got other bytes")
    if size > MAX_LINE_BYTES:
        return Skipped(where, f"expected at most {MAX_LINE_BYTES} bytes, got more")
    return usable(SeedMessage(url), where)


def _lines(path: Path) -> Iterator[str]:
    """Each line without its end, be that LF, CR LF or CR; of one that is too long, only enough to tell."""
    utf8 = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
    decoder = io.IncrementalNewlineDecoder(utf8, translate=True)
    held = ""
    for block in _as_utf8(path):
        *lines, held = (held + decoder.decode(block)).split("\n")
        yield from lines
        held = held[: MAX_LINE_BYTES + 1]  # too long already: what is still to come of it can be forgotten
    yield from (held + decoder.decode(b"", final=True)).split("\n")


def _as_utf8(path: Path) -> Iterator[bytes]:
    """Half of every character in UTF-16 would be read as NUL: one clear refusal says more than a skip for each line."""
    for number, block in enumerate(blocks(path)):
        if number == 0 and block.startswith(_UTF16):
            raise DataError(f"{path}: byte 0: expected UTF-8, got UTF-16")
        yield block
