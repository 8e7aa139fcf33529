"""The format of a file is told by what is in it."""

from __future__ import annotations

import codecs
import gzip
from pathlib import Path

import pytest

from crawlguide.core.errors import DataError
from crawlguide.gateway.readers.detect import format_of

SITEMAP = '<?xml version="1.0"?><urlset/>'
CONTENTS = [
    (b"https://a.example/\n", "urls"),
    (b"# mine\n", "urls"),
    (b"", "urls"),
    (b" \n\n", "urls"),
    (b"\x89PNG", "urls"),
    (SITEMAP.encode(), "sitemap"),
    (b"\n \t<urlset/>", "sitemap"),
    (codecs.BOM_UTF8 + b"<urlset/>", "sitemap"),
    (SITEMAP.encode("utf-16"), "sitemap"),
    (b" " * 200_000 + b"<urlset/>", "sitemap"),
    (b'{"url": "https://a.example/"}\n', "ndjson"),
    (codecs.BOM_UTF8 + b'\n{"url": "https://a.example/"}\n', "ndjson"),
]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(("content", "expected"), CONTENTS)
def test_the_first_byte_that_is_not_blank_tells(
    tmp_path: Path, content: bytes, expected: str, pack: type[bytes]
) -> None:
    path = tmp_path / "anything"
    path.write_bytes(pack(content))
    assert format_of(path) == expected


def test_a_folder_with_a_request_queue_is_scrapys(tmp_path: Path) -> None:
    (tmp_path / "requests.queue").mkdir()
    assert format_of(tmp_path) == "scrapy"


def test_another_folder_is_refused_with_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected a file, or a Scrapy JOBDIR with requests\.queue in it"):
        format_of(tmp_path)


def test_the_standard_input_is_not_touched() -> None:
    assert format_of(Path("-")) == "urls"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere"):
        format_of(tmp_path / "nowhere")
