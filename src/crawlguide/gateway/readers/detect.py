"""Which format a file has, told by what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core.errors import DataError
from crawlguide.gateway.readers._bytes import STANDARD_INPUT, blocks

if TYPE_CHECKING:
    from pathlib import Path

# The marks of UTF-8 and UTF-16, and the empty halves of UTF-16 characters, are as good as blank.
_BLANK = b" \t\r\n\x0b\x0c\x00\xef\xbb\xbf\xff\xfe"
_FORMATS = {b"<": "sitemap", b"{": "ndjson"}


def format_of(path: Path) -> str:
    """`scrapy`, `sitemap`, `ndjson` or else `urls`; the standard input, which cannot be read twice, is `urls`."""
    if path == STANDARD_INPUT:
        return "urls"
    if not path.is_dir():
        return _FORMATS.get(_first_byte(path), "urls")
    if (path / "requests.queue").is_dir():
        return "scrapy"
    raise DataError(f"{path}: expected a file, or a Scrapy JOBDIR with requests.queue in it, got another folder")


def _first_byte(path: Path) -> bytes:
    for block in blocks(path):
        if text := block.lstrip(_BLANK):
            return text[:1]
    return b""
