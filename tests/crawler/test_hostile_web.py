"""A crawl over pages that are made to end it: it goes on, and its memory stays within bounds."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import brotli
import pytest
from backports import zstd

from crawlguide.crawler import hops as hop_counting
from tests.crawler.crawling import lines
from tests.crawler.strangers import LOOPBACK, stranger

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

    from tests.crawler.strangers import Stranger

MIB = 1 << 20
MOST_MIB = 700  # of the crawler, of which its libraries take half; any of the bombs would need more
CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "html_cases.jsonl"
MEASURED = """
import atexit, pathlib, sys
from crawlguide.cli import main
atexit.register(lambda: print(pathlib.Path("/proc/self/status").read_text(), file=sys.stderr))
main()
"""
BOMBS = {
    "/gzip": (gzip.compress(bytes(16 * MIB)) * 64, "gzip"),
    "/zstd": (zstd.compress(bytes(16 * MIB)) * 64, "zstd"),
    "/br": (brotli.compress(bytes(1024 * MIB), quality=1), "br"),
}
HOP = "/hop"
CHARSETS = ("klingon", "utf-7", "utf-16", "iso-2022-jp", "x-user-defined", '"')
SOUPS = [
    b"<title>\x00</tilte><p",
    b"<!--" * 9_000,
    b"<table><a href=/>" * 1_000,
    b"<svg><title><math>" * 500,
    b"\xff" * 99,
]


async def endless_body(_: StreamReader, writer: StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    while True:
        writer.write(b"<p>and so on</p>" * 1_000)
        await writer.drain()


async def endless_headers(_: StreamReader, writer: StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    for number in count():
        writer.write(b"X-%d: and so on\r\n" % number)
        await writer.drain()


def lay(there: Stranger) -> None:
    """A home page with links to all that is bad, and to one good page behind it."""
    html = {"Content_Type": "text/html"}
    for path, (body, coding) in BOMBS.items():
        there.lay(path, body, Content_Encoding=coding, **html)
    there.lay("/loop-a", status="302 Found", Location="/loop-b")
    there.lay("/loop-b", status="302 Found", Location="/loop-a")
    there.lay("/loop", status="301 Moved Permanently", Location="/loop")
    for number in range(2 * hop_counting.MOST):
        there.lay(f"{HOP}{number}", status="302 Found", Location=f"{HOP}{number + 1}")
    there.lay("/header", Set_Cookie="x" * 10 * MIB)
    there.lay_raw("/headers", endless_headers)
    there.lay_raw("/endless", endless_body)
    for charset in CHARSETS:
        there.lay(
            f"/charset{charset.strip()}",
            b"<title>\xff\xfe\x1b$B caf\xe9</title>",
            Content_Type=f"text/html; charset={charset}",
        )
    cases = [json.loads(line)["input"].encode("utf-8", "surrogatepass") for line in _corpus()]
    for number, soup in enumerate([*SOUPS, *cases]):
        there.lay(f"/soup{number}", soup, **html)
    there.lay("/good", b"<title>A good page</title>", **html)
    linked = [path for path in there.laid if not path.startswith(HOP)] + [f"{HOP}0"]
    there.lay("/", "".join(f"<a href='{path}'>{path}</a>" for path in linked).encode(), **html)


def _corpus() -> list[str]:
    """Some of what breaks parsers, of all kinds; nothing where the corpus is not here."""
    return CORPUS.read_text().splitlines()[::10] if CORPUS.exists() else []


@dataclass(frozen=True)
class Crawled:
    """What became of it."""

    ended: subprocess.CompletedProcess[str]
    out: Path
    laid: list[str]

    @property
    def pages(self) -> dict[str, dict[str, Any]]:
        return {f"/{line['url'].split('/', 3)[3]}": line for line in lines(self.out) if line["kind"] == "page"}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """In a process of its own, for the sake of its memory."""
    out = tmp_path_factory.mktemp("hostile") / "out"

    async def crawl() -> Crawled:
        async with stranger() as there:
            lay(there)
            words = (
                "crawl",
                there.url(),
                "--topic",
                "good pages",
                "--max-pages",
                "0",
                "--delay",
                "0",
                "--out",
                str(out),
            )
            command = [sys.executable, "-c", MEASURED, *words, "--allow-network", *LOOPBACK]
            ended = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
            return Crawled(ended, out, list(there.laid))

    return asyncio.run(crawl())


def test_it_goes_on_to_the_last_page(crawled: Crawled) -> None:
    assert crawled.ended.returncode == 0, crawled.ended.stderr
    assert "nothing is left to fetch" in crawled.ended.stdout
    assert {path.replace('"', "%22") for path in crawled.laid if not path.startswith(HOP)} <= set(crawled.pages)
    assert crawled.pages["/good"]["title"] == "A good page"


@pytest.mark.parametrize("path", [*BOMBS, "/header", "/headers", "/endless"])
def test_what_is_too_much_is_said_to_be_too_large(crawled: Crawled, path: str) -> None:
    assert crawled.pages[path]["error"] == "too_large"


def test_redirects_in_a_circle_are_followed_once(crawled: Crawled) -> None:
    urls = [line["url"] for line in lines(crawled.out)]
    assert len(set(urls)) == len(urls)


def test_of_redirects_without_end_the_first_are_followed(crawled: Crawled) -> None:
    hops = [line for path, line in crawled.pages.items() if path.startswith(HOP)]
    assert len(hops) == hop_counting.MOST + 1
    assert [line["problem"] for line in hops if line["problem"]] == ["more than 20 redirects in a row"]


def test_its_memory_stays_within_bounds(crawled: Crawled) -> None:
    kib = int(crawled.ended.stderr.split("VmHWM:")[1].split()[0])
    assert kib < MOST_MIB * 1024, f"{kib / 1024:.0f} MiB"


def test_its_archive_can_be_read(crawled: Crawled) -> None:
    command = [sys.executable, "-m", "warcio.cli", "check", str(crawled.out / "pages.warc.gz")]
    assert subprocess.run(command, capture_output=True, text=True, check=False).returncode == 0
