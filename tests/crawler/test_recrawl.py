"""Pages that are fetched again: whoever has a copy says so, and an answer without content stands for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawlguide.crawler.options import CrawlOptions
from crawlguide.crawler.run import crawl
from tests.crawler.crawling import Listener, lines
from tests.crawler.strangers import LOOPBACK, Stranger, stranger

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.crawler.run import Outcome
    from tests.crawler.strangers import Play

PAGE = b"<title>B-trees</title><p>Database internals: indexes, transactions, B-trees. <a href='/a'>more of them</a>"


def versioned(server: Stranger, body: bytes, tag: str) -> Play:
    """An answer that is sent only to whoever has not got it."""

    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = f'ETag: "{tag}"\r\nContent-Type: text/html\r\n'.encode()
        if f'If-None-Match: "{tag}"'.encode() in server.requests[-1]:
            writer.write(b"HTTP/1.1 304 Not Modified\r\n" + head + b"\r\n")
        else:
            writer.write(b"HTTP/1.1 200 OK\r\n" + head + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    return play


async def again(server: Stranger, out: Path, *, resume: bool, most: int, refresh: bool = False) -> Outcome:
    options = CrawlOptions(
        seeds=() if resume else (server.url("/"),),
        topic=None if resume else "database internals",
        out=out,
        resume=resume,
        max_pages=most,
        delay_s=None if resume else 0.0,
        recrawl_after_s=None if resume or refresh else 1.0,
        refresh=refresh and not resume,
        allow_networks=LOOPBACK,
    )
    return await crawl(options, Listener())


async def test_a_page_that_has_not_changed_is_not_sent_again(tmp_path: Path) -> None:
    async with stranger() as server:
        server.lay("/robots.txt", b"User-agent: *\nAllow: /\n")
        server.lay_raw("/", versioned(server, PAGE, "first"))
        server.lay_raw("/a", versioned(server, PAGE + b"<p>another one", "second"))
        first = await again(server, tmp_path / "out", resume=False, most=2)
        assert (first.tally.pages, first.tally.revisits) == (2, 0)
        whole = await again(server, tmp_path / "out", resume=True, most=4)
    found = [line for line in lines(tmp_path / "out") if line["kind"] == "page"]
    assert [line["status"] for line in found] == [200, 200, 304, 304]
    assert [line["revisited"] for line in found] == [False, False, True, True]
    for before, after in ((found[0], by_url(found[2:], found[0])), (found[1], by_url(found[2:], found[1]))):
        assert [after[name] for name in ("content_hash", "etag", "title")] == [
            before[name] for name in ("content_hash", "etag", "title")
        ]
        assert after["relevance"] == pytest.approx(before["relevance"], abs=1e-6)
    assert (whole.tally.pages, whole.tally.revisits, whole.tally.relevant) == (2, 2, first.tally.relevant)
    with (tmp_path / "out" / "pages.warc.gz").open("rb") as file:
        records = ArchiveIterator(file, check_digests="raise")
        kinds = Counter(record.rec_type for record in records if record.content_stream().read() is not None)
    assert kinds == {"warcinfo": 1, "response": 3, "revisit": 2}  # one of them robots.txt


async def test_a_crawl_that_refreshes_says_so_to_its_guide(tmp_path: Path) -> None:
    async with stranger() as server:
        server.lay("/robots.txt", b"User-agent: *\nAllow: /\n")
        server.lay_raw("/", versioned(server, PAGE, "first"))
        server.lay_raw("/a", versioned(server, PAGE + b"<p>another one", "second"))
        done = await again(server, tmp_path / "out", resume=False, most=2, refresh=True)
    assert done.stats["freshness"]["pages"] == 2
    assert done.stats["freshness"]["ages"]["hour"] == 2


def by_url(found: list[dict[str, object]], one: dict[str, object]) -> dict[str, object]:
    return next(line for line in found if line["url"] == one["url"])
