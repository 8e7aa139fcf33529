"""A topic and one site are enough: sitemaps, feeds and the home page name the pages to begin with."""

from __future__ import annotations

import asyncio
import gzip
import time
from typing import TYPE_CHECKING

import pytest

from crawlguide.core.errors import ConfigError, CrawlGuideError, NotFound
from crawlguide.crawler import reading, seeds
from crawlguide.crawler.fetch import Fetcher, FetchOptions
from crawlguide.crawler.readers import HTML, Document
from crawlguide.crawler.reading import Reader
from crawlguide.lab import served
from crawlguide.policy.robots import allowed
from tests.crawler.crawling import ROBOTS, Site
from tests.crawler.strangers import Stranger, local, stranger
from tests.crawler.test_parse import pdf

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from crawlguide.lab.serving import Served

HOME = "http://site.example/"


@pytest.fixture(scope="module")
def site() -> Iterator[Served]:
    with served(Site(HOME), slowest_s=0) as server:
        yield server


async def found(server: Served, *given: str, **goal: object) -> tuple[list[str], list[str]]:
    said: list[str] = []
    async with Fetcher(FetchOptions(proxy=f"http://127.0.0.1:{server.port}")) as fetcher:
        return await seeds.found(given, goal, fetcher, "crawlguide", said.append, 0.0), said


def test_a_url_is_taken_as_it_is(site: Served) -> None:
    assert asyncio.run(found(site, "http://site.example/a/b", "site.example/c"))[0] == [
        "http://site.example/a/b",
        "https://site.example/c",
    ]


def test_of_a_host_the_pages_that_fit_the_topic_are_seeds(site: Served) -> None:
    urls, said = asyncio.run(found(site, "site.example", topic="database indexes"))
    assert urls == [HOME, f"{HOME}x1", f"{HOME}storage/btree-indexes"]
    assert said == ["site.example: 4 pages named by sitemaps and feeds, 2 of them are seeds"]


def test_where_no_page_has_words_of_the_topic_the_home_page_is_the_only_seed(site: Served) -> None:
    urls, said = asyncio.run(found(site, "site.example", topic="sailing"))
    assert urls == [HOME]
    none = "none has words of the topic: the home page is the only seed"
    assert said == [f"site.example: 4 pages named by sitemaps and feeds, {none}"]


def test_without_a_topic_all_pages_are_seeds(site: Served) -> None:
    assert len(asyncio.run(found(site, "site.example"))[0]) == 5


def test_what_robots_txt_forbids_is_not_looked_at(site: Served) -> None:
    asyncio.run(found(site, "site.example"))
    assert {request.status for request in site.log if "private" not in request.url}
    assert not [request.url for request in site.log if not allowed(ROBOTS.encode(), "x", request.url)]


def test_a_host_that_nobody_reaches_is_an_error_that_names_it() -> None:
    async def unreached() -> None:
        async with Fetcher(FetchOptions(proxy="http://127.0.0.1:9", timeout_s=2)) as fetcher:
            await seeds.found(["nowhere.example"], {}, fetcher, "crawlguide", str)

    with pytest.raises(NotFound, match=r"no seed can be reached: nowhere\.example: "):
        asyncio.run(unreached())


def test_where_nobody_knows_the_name_of_any_seed_that_is_said_at_once() -> None:
    async def sought(*given: str) -> list[str]:
        async with Fetcher(FetchOptions(timeout_s=2), resolve=_of_example) as fetcher:
            return await seeds.found(given, {}, fetcher, "crawlguide", str)

    with pytest.raises(CrawlGuideError, match=r"^no seed can be reached: nowhere\.example: not known$"):
        asyncio.run(sought("http://nowhere.example/a", "http://nowhere.example/b"))
    with pytest.raises(CrawlGuideError, match=r"nowhere\.example: not known; nohost\.example: "):
        asyncio.run(sought("http://nowhere.example/a", "nohost.example"))
    assert asyncio.run(sought("http://nowhere.example/a", "http://example.com/")) == [
        "http://nowhere.example/a",
        "http://example.com/",
    ]


async def test_silent_name_servers_are_waited_for_together_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeds, "NAMES_WITHIN_S", 0.3)
    monkeypatch.setattr(seeds, "SILENT_S", 0.1)

    async def silent(host: str, port: int) -> list[str]:
        return ["93.184.215.14"] if host == "example.com" else await asyncio.Future()

    said: list[str] = []
    given = [f"http://h{number}.example/" for number in range(20)]
    began = time.monotonic()
    async with Fetcher(FetchOptions(), resolve=silent) as fetcher:
        kept = await seeds.found([*given, "http://example.com/"], {}, fetcher, "crawlguide", said.append)
    assert time.monotonic() - began < 3
    assert len(kept) == 21
    waits = "waiting for the addresses of h0.example, h1.example, h2.example, h3.example, h4.example and 15 more"
    assert said[:2] == [waits, "h0.example: no name server has answered within 0.3 s"]


async def _of_example(host: str, port: int) -> list[str]:
    if host == "example.com":
        return ["93.184.215.14"]
    raise OSError(-2, "not known")


def test_a_seed_without_a_letter_is_an_error(site: Served) -> None:
    for given in ("", "  "):
        with pytest.raises(ConfigError, match="SEED: expected a URL or a host, got nothing"):
            asyncio.run(found(site, given))


def test_what_is_no_url_is_an_error_that_names_it(site: Served) -> None:
    with pytest.raises(ConfigError, match="SEED: "):
        asyncio.run(found(site, "http://"))


def test_a_reference_is_a_file_or_a_page(site: Served, tmp_path: Path) -> None:
    async def read(where: str) -> str:
        async with Fetcher(FetchOptions(proxy=f"http://127.0.0.1:{site.port}")) as fetcher:
            return await seeds.reference(where, fetcher)

    def kept(name: str, content: bytes) -> str:
        (tmp_path / name).write_bytes(content)
        return str(tmp_path / name)

    assert asyncio.run(read(kept("sample.txt", b"how an index is built"))) == "how an index is built"
    assert asyncio.run(read(kept("sample.html", b"how <b>an</b> index"))) == "how an index"
    assert asyncio.run(read(kept("paper.pdf", pdf()))) == "A paper"
    assert "Welcome" in asyncio.run(read(HOME))
    with pytest.raises(ConfigError, match=r"--reference: .*missing"):
        asyncio.run(read(str(tmp_path / "missing.txt")))
    with pytest.raises(CrawlGuideError, match=r"--reference: .*broken\.pdf: cannot be read as pdf"):
        asyncio.run(read(kept("broken.pdf", b"%PDF-1.7 and no more")))
    for name, content in (("empty.txt", b" "), ("picture.png", b"\x89PNG\r\n\x1a\n\x00")):
        with pytest.raises(CrawlGuideError, match=rf"--reference: .*{name}: no text was found in it"):
            asyncio.run(read(kept(name, content)))


async def sought(there: Stranger, **goal: object) -> tuple[list[str], list[str]]:
    """The seeds of a host, and the paths it was asked for."""
    async with local(timeout_s=1.0) as fetcher:
        urls = await seeds.found([there.url("").removeprefix("http://")], goal, fetcher, "crawlguide", str, 0.0)
    return urls, [request.split()[1].decode() for request in there.requests]


@pytest.mark.parametrize(
    "robots",
    [
        b"200 OK\r\nContent-Length: 999\r\n\r\nUser-agent: *\nDisallow: /\n",
        b"200 OK\r\nContent-Encoding: gzip\r\n\r\nno gzip",
        b"429 Slow\r\nContent-Length: 0\r\n\r\n",
        b"300 Choose\r\nContent-Length: 0\r\n\r\n",
    ],
)
async def test_where_the_rules_are_not_known_nobody_looks_around(robots: bytes) -> None:
    async with stranger() as there:
        there.lay_raw("/robots.txt", b"HTTP/1.1 " + robots)
        assert await sought(there) == ([there.url()], ["/robots.txt"])


async def test_a_robots_txt_on_another_site_does_not_take_the_place_of_the_host() -> None:
    async with stranger() as there, stranger() as other:
        there.lay("/robots.txt", b"", "301 Moved", Location=other.url("/robots.txt", host="localhost"))
        other.lay("/robots.txt", b"")
        urls, _ = await sought(there)
        assert urls == [there.url()]


async def test_what_is_found_in_time_are_the_seeds() -> None:
    async def slow(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b" ")
            await asyncio.sleep(0.1)

    async with stranger() as there, local(timeout_s=0.5) as fetcher:
        there.lay("/", b"<a href=/named>a page</a>", Content_Type="text/html")
        there.lay_raw("/sitemap.xml", slow)
        host = there.url("").removeprefix("http://")
        began = time.monotonic()
        urls = await seeds.found([host], {}, fetcher, "crawlguide", str, 0.0, within_s=2.0)
        assert urls == [there.url(), there.url("/named")]
        assert time.monotonic() - began < 8  # a slow body is given up after ten seconds


async def test_a_home_page_that_takes_long_to_read_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient, beats = Reader(limit_s=1.0), 0
    monkeypatch.setattr(reading, "_reader", lambda: impatient)
    impatient.read(Document(HTML, b"ready", HOME, "", ""))

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    async with stranger() as there, local(timeout_s=0.5) as fetcher:
        there.lay("/robots.txt")
        home = there.lay("/", b"<div>" * (1 << 20), Content_Type="text/html")
        site = seeds.Site("", fetcher, "crawlguide", str, 0.0, home=home)
        beating = asyncio.create_task(beat())
        assert await site._home(home, seeds.Named("127.0.0.1")) == []
        beating.cancel()
    impatient.close()
    assert beats > 20


async def test_of_sitemaps_the_first_few_are_read_each_once() -> None:
    many = "".join(f"<sitemap><loc>/{number}.xml</loc></sitemap>" for number in range(45_000))
    index = f"<sitemapindex><sitemap><loc>/sitemap.xml</loc></sitemap>{many}</sitemapindex>".encode()
    async with stranger() as there:
        there.lay("/robots.txt")
        for path in ("/sitemap.xml", *(f"/{number}.xml" for number in range(10))):
            there.lay(path, index)
        _, asked = await sought(there)
        assert asked[2:] == ["/sitemap.xml", "/0.xml", "/1.xml", "/2.xml", "/3.xml"]


async def test_what_the_feeds_of_the_home_page_name_are_seeds() -> None:
    feed = b"<rss><channel><item><link>/news/1</link><title>A database index</title></item></channel></rss>"
    async with stranger() as there:
        there.lay("/robots.txt")
        home = b"<link rel=alternate type=application/rss+xml href=/feed>"
        there.lay("/", home, Content_Type="text/html")
        there.lay("/feed", feed, Content_Type="application/rss+xml")
        urls, _ = await sought(there)
        assert urls == [there.url("/"), there.url("/news/1")]


async def test_sitemaps_may_be_packed() -> None:
    async with stranger() as there:
        there.lay("/robots.txt", b"Sitemap: /all.xml.gz")
        there.lay("/all.xml.gz", gzip.compress(b"<urlset><url><loc>/database</loc></url></urlset>"))
        urls, _ = await sought(there)
        assert urls == [there.url("/"), there.url("/database")]


def test_a_site_names_seeds_of_its_own_domain_alone() -> None:
    named, own = seeds.Named("site.example"), [HOME, "https://www.site.example/a"]
    for url in (*own, "https://bank.example/", "http://169.254.169.254/", "http://site.evil/"):
        named.add(url, "database")
    assert list(named.words) == own


def test_words_about_a_page_are_bounded() -> None:
    named = seeds.Named("site.example")
    for _ in range(1_000):
        named.add(HOME, "x" * 1_000)
    assert len(named.words[HOME]) < 1_000
