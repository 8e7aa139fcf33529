"""Whatever bytes a reader meets: seeds, skips, or one `DataError` that names the file; never anything else."""

from __future__ import annotations

import gzip
import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from crawlguide.core.errors import DataError
from crawlguide.core.messages import SeedMessage
from crawlguide.gateway.readers import Skipped, scrapy, sitemap, urls
from crawlguide.gateway.readers.detect import format_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Reader = Callable[[Path], Iterator[SeedMessage | Skipped]]

# Any bytes, and any bytes between words of the formats, which get further.
WORDS = [
    b"https://a.example/", b"\n", b"\r", b"#", b"\xef\xbb\xbf", b"<urlset>", b"<url>", b"<loc>", b"</loc>", b"</url>",
    b"</urlset>", b"<sitemapindex>", b"<sitemap>", b"<!DOCTYPE a [", b"<!ENTITY b 'c'>", b"&b;", b"<![CDATA[", b"]]>",
    b"<!--", b"<?xml version='1.0'?>", b"<?xml version='1.0' encoding='shift_jis'?>", b"\x00\x00\x00\x01", b"\x80\x04",
    b"}", b"\x8c\x03url", b"s.", b"\xfb", b"\xda\x03url", b'{"tail": [0, 0, 4]}',
]  # fmt: skip
CONTENTS = some.binary() | some.lists(some.sampled_from(WORDS) | some.binary(max_size=5), max_size=12).map(b"".join)
ON_REAL_FILES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def exhaust(read: Reader, path: Path) -> None:
    try:
        for one in read(path):
            assert isinstance(one, SeedMessage | Skipped)
    except DataError as refused:
        assert path.name in refused.message  # noqa: PT017 - to be refused is fine, and so is not to be


@pytest.mark.parametrize("read", [urls.read, sitemap.read], ids=["urls", "sitemap"])
@ON_REAL_FILES
@given(content=CONTENTS, packed=some.booleans(), cut=some.integers(0, 20))
def test_a_file_of_any_bytes(tmp_path: Path, read: Reader, content: bytes, packed: bool, cut: int) -> None:
    path = tmp_path / "anything"
    whole = gzip.compress(content) if packed else content
    path.write_bytes(whole[: max(0, len(whole) - cut)])
    exhaust(read, path)


@ON_REAL_FILES
@given(content=CONTENTS, info=CONTENTS)
def test_queues_of_any_bytes(tmp_path: Path, content: bytes, info: bytes) -> None:
    jobdir = tmp_path / "jobdir"
    shutil.rmtree(jobdir, ignore_errors=True)
    (jobdir / "requests.queue" / "0s").mkdir(parents=True)
    (jobdir / "requests.queue" / "0").write_bytes(content)
    (jobdir / "requests.queue" / "1").write_bytes(bytes(4) + content + len(content).to_bytes(4, "big"))
    (jobdir / "requests.queue" / "0s" / "q00000").write_bytes(len(content).to_bytes(4, "big") + content + content)
    (jobdir / "requests.queue" / "0s" / "info.json").write_bytes(info)
    exhaust(scrapy.read, jobdir)


@ON_REAL_FILES
@given(content=CONTENTS, packed=some.booleans())
def test_any_bytes_have_a_format(tmp_path: Path, content: bytes, packed: bool) -> None:
    path = tmp_path / "anything"
    path.write_bytes(gzip.compress(content) if packed else content)
    try:
        assert format_of(path) in {"urls", "sitemap", "ndjson"}
    except DataError:
        assert not packed, "only bytes that pretend to be gzip cannot be read"
