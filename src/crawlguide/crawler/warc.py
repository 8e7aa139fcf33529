"""`pages.warc.gz`: every answer as it came, one gzip member a record (WARC 1.1, ISO 28500:2017)."""

from __future__ import annotations

import io
import zlib
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from crawlguide.core.errors import ConfigError
from crawlguide.core.extras import installing
from crawlguide.crawler.journal import append
from crawlguide.crawler.lines import redirect_of
from crawlguide.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.crawler.fetched import Fetched, Headers

LEVEL = 4  # of compression: half the time of the usual 6 for 5 % more bytes
BLOCK = 65_536
GZIP = 31  # window bits of zlib for a gzip member
ASCII = "".join(map(chr, range(0x20, 0x7F)))
UNDONE = ("content-encoding", "transfer-encoding", "content-length")  # no longer true: the content coding is undone
SAME_CONTENT = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"


class Warc:
    """Appends records; `length` is where the next one begins."""

    def __init__(self, path: Path) -> None:
        try:
            self._writer: Any = import_module("warcio.warcwriter").WARCWriter
            self._headers: Any = import_module("warcio.statusandheaders").StatusAndHeaders
        except ImportError:
            raise ConfigError(f"crawl needs warcio: {installing('crawl')}; or say --no-warc") from None
        self._file = path.open("ab", buffering=0)
        self.length = path.stat().st_size
        if not self.length:
            self._append(self._info(path.name))

    def add(self, fetched: Fetched, at: str) -> tuple[int, int] | None:
        """The answer to a request, or that nothing has changed; where the record lies. None: nobody answered."""
        hop = redirect_of(fetched)
        if hop is not None:
            record = self._answer(fetched.url, at, self._http(hop.status, "", hop.headers, b""), b"")
        elif fetched.status is None or fetched.error:
            return None
        else:
            body = fetched.body
            http = self._http(fetched.status, fetched.reason, fetched.headers, body)
            record = self._answer(fetched.url, at, http, body, unchanged=fetched.status == 304)
        offset = self.length
        self._append(record)
        return offset, self.length - offset

    def close(self) -> None:
        self._file.close()

    def _info(self, name: str) -> bytes:
        said = {"software": f"crawlguide/{__version__}", "format": "WARC File Format 1.1"}
        return self._packed(lambda writer: writer.create_warcinfo_record(name, said))

    def _answer(self, url: str, at: str, http: Any, body: bytes, *, unchanged: bool = False) -> bytes:
        headers = {"WARC-Date": at} | ({"WARC-Profile": SAME_CONTENT} if unchanged else {})
        return self._packed(
            lambda writer: writer.create_warc_record(
                url,
                "revisit" if unchanged else "response",
                payload=io.BytesIO(body),
                length=len(body),
                http_headers=http,
                warc_headers_dict=headers,
            )
        )

    def _packed(self, record: Any) -> bytes:
        out = io.BytesIO()
        writer = self._writer(out, gzip=False, warc_version="1.1")
        writer.write_record(record(writer))
        packer = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)
        return packer.compress(out.getbuffer()) + packer.flush()

    def _http(self, status: int, reason: str, headers: Headers, body: bytes) -> Any:
        kept = [(_undone(_ascii(name)), _sendable(value)) for name, value in headers]
        if body:
            kept.append(("Content-Length", str(len(body))))
        return self._headers(f"{status} {_ascii(reason)}".strip(), kept, protocol="HTTP/1.1")

    def _append(self, record: bytes) -> None:
        append(self._file, record)
        self.length += len(record)


def whole_records(path: Path) -> int:
    """The bytes of an archive up to the end of its last whole record."""
    whole = at = 0
    record = zlib.decompressobj(GZIP)
    with path.open("rb") as file, suppress(zlib.error):
        while block := file.read(BLOCK):
            while block:
                record.decompress(block)
                at += len(block) - len(record.unused_data)
                block = record.unused_data
                if record.eof:
                    whole, record = at, zlib.decompressobj(GZIP)
    return whole


def _undone(name: str) -> str:
    return f"X-Archive-Orig-{name}" if name.lower() in UNDONE else name


def _ascii(text: str) -> str:
    """As a status line may be: warcio writes no other letters there."""
    return _plain(text).encode("ascii", "replace").decode()


def _sendable(value: str) -> str:
    """Letters beyond ASCII percent-encoded: warcio does so with some values, and cannot write others."""
    return quote(_plain(value), safe=ASCII)


def _plain(text: str) -> str:
    """On one line."""
    return text.replace("\r", " ").replace("\n", " ")
