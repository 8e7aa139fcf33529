"""A crawl from its seeds to its files, on a web that is served on loopback."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.parquet
import pytest

from crawlguide import AsyncClient, AsyncGuide, lab
from crawlguide.core.errors import ConfigError, CrawlGuideError, Forbidden
from crawlguide.core.types import READ_ROBOTS
from crawlguide.crawler import loop as looping
from crawlguide.crawler import reading
from crawlguide.crawler.fetch import FetchOptions
from crawlguide.crawler.fetched import Fetched
from crawlguide.crawler.folder import CrawlFolder
from crawlguide.crawler.options import CrawlOptions
from crawlguide.crawler.reading import Reader
from crawlguide.crawler.run import crawl
from crawlguide.crawler.summary import Summary, write_html
from crawlguide.crawler.tally import Tally
from crawlguide.crawler.warc import Warc
from crawlguide.gateway.client.assignments import Assignments
from crawlguide.lab.run import Settings, run
from crawlguide.policy.robots import cache
from crawlguide.store.moves import record
from tests.crawler.crawling import Listener, Place, lines
from tests.crawler.strangers import LOOPBACK, stranger
from tests.gateway.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.core.messages import Fetch
    from crawlguide.crawler.lines import PageLine
    from crawlguide.crawler.run import Outcome
    from crawlguide.lab.synthetic import SyntheticWeb


@pytest.fixture(scope="module")
def done(web: SyntheticWeb, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, Outcome]]:
    """A crawl that has ended."""
    with lab.served(web, slowest_s=0) as served:
        place = Place(served, web.tasks()[0])
        yield place, place.crawled(tmp_path_factory.mktemp("done") / "out", max_pages=120)


def out(done: tuple[Place, Outcome]) -> Path:
    return done[1].folder.path


def test_a_crawl_that_begins_is_not_said_to_be_over(
    place: Place, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "crawlguide")
    place.crawled(tmp_path / "out", max_pages=5)
    assert "was created" in caplog.text
    assert "is exhausted" not in caplog.text


def test_every_request_is_a_line(done: tuple[Place, Outcome]) -> None:
    asked = Counter(request.url for request in done[0].served.log)
    assert Counter(line["url"] for line in lines(out(done))) == asked
    assert len(done[0].requested()) == 120


def test_pages_on_the_topic_are_judged_relevant(done: tuple[Place, Outcome]) -> None:
    """By their text alone: nobody tells which they are."""
    judged = {line["url"]: (line["relevance"] or 0.0) >= 0.5 for line in lines(out(done)) if line["status"] == 200}
    right = sum(judged[url] == (url in done[0].task.relevant) for url in judged)
    assert right > 0.8 * len(judged)
    assert done[1].tally.relevant == sum(judged.values()) > 20


def test_robots_txt_is_obeyed(done: tuple[Place, Outcome], web: SyntheticWeb) -> None:
    assert not [url for url in done[0].requested() if web.forbidden(url)]


def test_a_redirect_is_told_and_its_target_fetched_by_itself(done: tuple[Place, Outcome]) -> None:
    told = [line for line in lines(out(done)) if line["redirected_to"]]
    assert told
    assert {line["status"] for line in told} == {301}
    assert {line["redirected_to"] for line in told} & {line["url"] for line in lines(out(done))}


def test_pages_parquet_says_what_pages_jsonl_says(done: tuple[Place, Outcome]) -> None:
    table = pyarrow.parquet.read_table(out(done) / "pages.parquet")
    assert table.column("url").to_pylist() == [line["url"] for line in lines(out(done))]
    assert table.column("status").to_pylist() == [line["status"] for line in lines(out(done))]


def test_links_parquet_has_the_links_of_all_pages(done: tuple[Place, Outcome], web: SyntheticWeb) -> None:
    rows = pyarrow.parquet.read_table(out(done) / "links.parquet").to_pylist()
    page = next(line["url"] for line in lines(out(done)) if line["links"] > 3)
    found = [(row["target"], row["anchor"]) for row in rows if row["source"] == page]
    assert found == [(link.url, link.anchor) for link in web.fetch(page).links]


def test_duckdb_joins_pages_and_links(done: tuple[Place, Outcome]) -> None:
    pages, links = (duckdb.read_parquet(str(out(done) / name)) for name in ("pages.parquet", "links.parquet"))
    counted = (
        "select url, pages.links, count(*) from pages join links on source = url where pages.links > 0 group by all"
    )
    rows = duckdb.query(counted).fetchall()
    assert pages.filter("links > 0").count("*").fetchall() == [(len(rows),)]
    assert links.columns == ["source", "target", "anchor", "rel", "position"]
    assert all(said == found for _, said, found in rows)


def test_the_archive_is_one_that_warcio_checks(done: tuple[Place, Outcome]) -> None:
    from warcio.archiveiterator import ArchiveIterator

    command = [sys.executable, "-m", "warcio.cli", "check", "-v", str(out(done) / "pages.warc.gz")]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == 0, checked.stdout
    with (out(done) / "pages.warc.gz").open("rb") as file:
        kinds = [
            (record.rec_type, record.rec_headers.get_header("WARC-Target-URI")) for record in ArchiveIterator(file)
        ]
    assert kinds[0][0] == "warcinfo"
    assert [url for kind, url in kinds if kind == "response"] == [line["url"] for line in lines(out(done))]


def test_a_line_says_where_its_record_lies(done: tuple[Place, Outcome], web: SyntheticWeb) -> None:
    from warcio.archiveiterator import ArchiveIterator

    line = next(line for line in lines(out(done)) if line["links"] > 3)
    with (out(done) / "pages.warc.gz").open("rb") as file:
        file.seek(line["warc_offset"])
        record = next(iter(ArchiveIterator(file)))
        assert record.rec_headers.get_header("WARC-Target-URI") == line["url"]
        assert web.fetch(line["url"]).title in record.content_stream().read().decode()
        assert line["warc_length"] > 100


def test_the_lab_replays_the_folder_of_a_crawl(done: tuple[Place, Outcome]) -> None:
    seen = lab.web.open(out(done))
    (task,) = seen.tasks()
    assert task.name == done[0].task.name
    assert len(task.relevant) == done[1].tally.relevant
    again = run(seen, task, "layered", 0, Settings(budget=30))
    assert sum(again.relevant) > 5


def test_the_report_is_a_page_of_its_own(done: tuple[Place, Outcome]) -> None:
    write_html(Summary(done[1]), done[1].folder.report)
    page = done[1].folder.report.read_text()
    assert done[0].task.name in page
    assert '<path class="curve"' in page
    assert 'src="' not in page


def test_a_folder_that_holds_a_crawl_is_left_alone(done: tuple[Place, Outcome]) -> None:
    with pytest.raises(ConfigError, match=r"holds a crawl already .* --resume"):
        done[0].crawled(out(done))


def test_there_must_be_a_crawl_to_go_on_with(place: Place, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no crawl in"):
        place.crawled(tmp_path / "out", resume=True)


def test_what_goes_on_is_the_crawl_that_was_begun(done: tuple[Place, Outcome]) -> None:
    with pytest.raises(ConfigError, match=r"--topic: this crawl was begun with"):
        done[0].crawled(out(done), resume=True, topic="something else")


def test_two_crawls_do_not_work_in_one_folder(tmp_path: Path) -> None:
    folder = CrawlFolder(tmp_path / "out")
    with folder.held(), pytest.raises(ConfigError, match="another crawl is at work"), folder.held():
        pass
    with folder.held():
        assert folder.path.is_dir()


def test_a_reason_in_any_language_is_archived(tmp_path: Path) -> None:
    archive = Warc(tmp_path / "pages.warc.gz")
    answer = Fetched("http://a.example/", 404, reason="Objet non trouv\u00e9", body=b"x")
    assert archive.add(answer, "2026-01-01T00:00:00Z") is not None
    archive.close()


@pytest.mark.parametrize(
    ("value", "archived"),
    [
        ("sid=1; näme", "sid=1; n%C3%A4me"),
        ("attachment; filename=été.html", "attachment; filename=%C3%A9t%C3%A9.html"),
        ("été", "%C3%A9t%C3%A9"),
        ("a%20b; c", "a%20b; c"),
    ],
)
def test_headers_in_any_language_are_archived(tmp_path: Path, value: str, archived: str) -> None:
    from warcio.archiveiterator import ArchiveIterator

    archive = Warc(tmp_path / "pages.warc.gz")
    answer = Fetched("http://a.example/", 200, headers=(("X-Said", value),), body=b"x")
    assert archive.add(answer, "2026-01-01T00:00:00Z") is not None
    archive.close()
    with (tmp_path / "pages.warc.gz").open("rb") as file:
        *_, record = ArchiveIterator(file)
        assert record.http_headers.get_header("X-Said") == archived


async def test_no_header_of_a_stranger_ends_a_crawl(tmp_path: Path) -> None:
    async with stranger() as there:
        there.lay_raw("/", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nSet-Cookie: näme=1; path=/\r\n\r\nx".encode())
        options = CrawlOptions(seeds=(there.url("/"),), out=tmp_path / "out", allow_networks=LOOPBACK, max_pages=1)
        assert (await crawl(options, Listener())).tally.pages == 1


def test_pages_that_take_long_to_read_keep_no_other_page_from_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = Reader(limit_s=0.4)
    monkeypatch.setattr(reading, "_reader", lambda: impatient)
    slow, quick = b"<div>" * (1 << 20), b"<title>quick</title>" + (b"<p>" + b"x " * 200) * 100
    many = 15  # more than there are threads on a small machine

    async def done() -> list[str]:
        async with stranger() as there:
            for number in range(many):
                there.lay(f"/slow{number}", slow, Content_Type="text/html")

            async def last(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                while sum(b"GET /slow" in request for request in there.requests) < many:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + quick)
                await writer.drain()

            there.lay_raw("/quick", last)
            seeds = tuple(there.url(path) for path in there.laid)
            options = CrawlOptions(seeds=seeds, out=tmp_path / "out", delay_s=0.0, allow_networks=LOOPBACK)
            await crawl(options, Listener())
            return [line["url"] for line in lines(tmp_path / "out") if line["kind"] == "page"]

    urls = asyncio.run(done())
    impatient.close()
    assert len(urls) == many + 1
    assert next(at for at, url in enumerate(urls) if url.endswith("/quick")) < many / 2


@pytest.mark.parametrize("robots", ["X-Robots-Tag", "meta"])
async def test_what_a_page_says_to_the_name_that_the_crawler_has_counts(tmp_path: Path, robots: str) -> None:
    async with stranger() as there:
        meta = b"<meta name=mybot content=nofollow>" if robots == "meta" else b""
        headers = {"X_Robots_Tag": "mybot: nofollow"} if robots != "meta" else {}
        start = there.lay("/", meta + b"<a href=/next>x</a>", Content_Type="text/html", **headers)
        options = CrawlOptions(
            seeds=(start,), out=tmp_path / "out", delay_s=0.0, allow_networks=LOOPBACK, user_agent="MyBot/1.0"
        )
        await crawl(options, Listener())
        assert [request.split()[1] for request in there.requests] == [b"/robots.txt", b"/"]


@pytest.mark.parametrize("is_served", [False, True])
async def test_what_a_robots_txt_leads_to_are_its_rules(tmp_path: Path, is_served: bool) -> None:
    guide = serving(tmp_path, robots=True) if is_served else nullcontext()
    async with stranger() as there:
        start = there.lay("/", b"<a href=/no>x</a><a href=/yes>x</a>", Content_Type="text/html")
        there.lay("/robots.txt", b"", "301 Moved", Location="/rules.txt")
        there.lay("/rules.txt", b"User-agent: *\nDisallow: /no\n")
        with guide as server:
            options = CrawlOptions(
                seeds=(start,), out=tmp_path / "out", delay_s=0.0, max_time_s=20.0, allow_networks=LOOPBACK,
                guide=server.url if server else None,
            )  # fmt: skip
            assert (await crawl(options, Listener())).why == "exhausted"
        asked = [request.split()[1] for request in there.requests]
        assert asked == [b"/robots.txt", b"/rules.txt", b"/", b"/yes"]
        (line,) = (line for line in lines(tmp_path / "out") if line["kind"] == "robots")
        assert (line["status"], line["redirected_to"]) == (200, None)


@pytest.mark.parametrize(("status", "asked"), [("404 Not Found", [b"/"]), ("500 Broken", [])])
async def test_a_robots_txt_that_leads_to_none_permits_all_and_one_that_leads_to_trouble_nothing(
    tmp_path: Path, status: str, asked: list[bytes]
) -> None:
    async with stranger() as there:
        start = there.lay("/", b"text", Content_Type="text/html")
        there.lay("/robots.txt", b"", "301 Moved", Location="/rules.txt")
        there.lay("/rules.txt", b"User-agent: *\nDisallow: /\n", status)
        options = CrawlOptions(
            seeds=(start,), out=tmp_path / "out", delay_s=0.0, max_time_s=2.0, allow_networks=LOOPBACK
        )
        await crawl(options, Listener())
        paths = [request.split()[1] for request in there.requests]
        assert paths == [b"/robots.txt", b"/rules.txt", *asked]


def tried_soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be fetched, robots.txt files among it."""
    for module in (cache, record):
        monkeypatch.setattr(module, "FIRST_RETRY_S", 0.1)


@pytest.mark.parametrize(
    ("place", "tries"), [("http://10.0.0.1", 1), ("http://127.0.0.1:49151", 3), ("http://nowhere.invalid", 3)]
)
async def test_hosts_whose_robots_txt_nobody_can_read_do_not_keep_a_crawl_from_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, tries: int
) -> None:
    tried_soon_again(monkeypatch)
    async with stranger() as there:
        start = there.lay("/", f"<a href={place}/x>x</a><a href=/next>x</a>".encode(), Content_Type="text/html")
        options = CrawlOptions(seeds=(start,), out=tmp_path / "out", delay_s=0.0, allow_networks=LOOPBACK)
        outcome = await asyncio.wait_for(crawl(options, Listener()), 30)
        assert [request.split()[1] for request in there.requests] == [b"/robots.txt", b"/", b"/next"]
    assert [line["url"] for line in lines(tmp_path / "out")].count(f"{place}/robots.txt") >= tries
    assert (outcome.why, outcome.stats["leased"]) == ("exhausted", 0)
    facts = dict(Summary(outcome).facts())
    assert facts["robots.txt"].startswith(f"that of {place.removeprefix('http://')} could not be read: ")
    assert any("--resume" in line for line in Summary(outcome).advice())


async def test_a_crawl_waits_for_what_other_crawlers_are_at_and_for_no_blocked_host(tmp_path: Path) -> None:
    asked, released = asyncio.Event(), asyncio.Event()

    async def home(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await released.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a href=http://10.0.0.1/x>x</a>")
        await writer.drain()

    async with stranger() as there:
        with serving(tmp_path, robots=True) as server:
            options = CrawlOptions(
                seeds=(there.lay_raw("/", home),), out=tmp_path / "out", delay_s=0.0, allow_networks=LOOPBACK,
                guide=server.url, concurrency=1,
            )  # fmt: skip
            crawling = asyncio.create_task(crawl(options, Listener()))
            async with AsyncClient(server.url) as guide:
                await asyncio.wait_for(asked.wait(), 30)
                async with Assignments(guide, "crawl", "other", concurrency=1) as others:
                    await others.seed(more := [there.url(f"/{number}") for number in range(5)])
                    await asyncio.wait_for(others.next(), 30)
                    released.set()
                    done, _ = await asyncio.wait({crawling}, timeout=4.0)
                    assert not done
            outcome = await asyncio.wait_for(crawling, 30)
    assert outcome.why == "exhausted"
    assert {line["url"] for line in lines(tmp_path / "out")} > set(more)
    assert outcome.tally.lost_hosts() == {"10.0.0.1": "10.0.0.1 leads to 10.0.0.1, which is no public address"}


async def test_a_crawl_goes_on_when_a_robots_txt_can_be_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried_soon_again(monkeypatch)
    async with stranger() as there:
        options = CrawlOptions(
            seeds=(there.lay("/", b"text"),), out=tmp_path / "out", delay_s=0.0, allow_networks=LOOPBACK
        )
        there.lay_raw("/robots.txt", b"")  # hangs up
        outcome = await asyncio.wait_for(crawl(options, Listener()), 30)
        assert (outcome.why, outcome.tally.requests) == ("exhausted", 0)
        there.lay("/robots.txt", b"")
        await asyncio.sleep(1.0)  # it is not asked for again before its time
        outcome = await asyncio.wait_for(crawl(replace(options, resume=True), Listener()), 30)
        assert (outcome.why, outcome.tally.requests, outcome.tally.unread) == ("exhausted", 1, {})


async def test_why_a_document_could_not_be_read_is_said_in_its_line_and_in_the_summary(tmp_path: Path) -> None:
    async with stranger() as there:
        start = there.lay("/paper", b"%PDF-1.7 and no more", Content_Type="application/pdf")
        options = CrawlOptions(seeds=(start,), out=tmp_path / "out", delay_s=0.0, allow_networks=LOOPBACK)
        outcome = await crawl(options, Listener())
        (line,) = (line for line in lines(tmp_path / "out") if line["kind"] == "page")
        assert (line["status"], line["error"]) == (200, None)
        assert line["problem"].startswith("cannot be read as pdf")
        assert dict(Summary(outcome).facts())["not read"] == f"1 {line['problem']}"


@pytest.mark.parametrize("length", [b"Content-Length: 20000000\r\n", b""])
async def test_of_a_robots_txt_of_any_length_the_beginning_counts(tmp_path: Path, length: bytes) -> None:
    async def long(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + length + b"\r\nUser-agent: *\nDisallow: /no\n")
        while True:
            writer.write(b"# and so on\n" * 10_000)
            await writer.drain()

    async with stranger() as there:
        start = there.lay("/", b"<a href=/no>x</a><a href=/yes>x</a>", Content_Type="text/html")
        there.lay_raw("/robots.txt", long)
        options = CrawlOptions(
            seeds=(start,), out=tmp_path / "out", delay_s=0.0, max_time_s=20.0, allow_networks=LOOPBACK
        )
        assert (await crawl(options, Listener())).why == "exhausted"
        assert [request.split()[1] for request in there.requests] == [b"/robots.txt", b"/", b"/yes"]
        (line,) = (line for line in lines(tmp_path / "out") if line["kind"] == "robots")
        assert READ_ROBOTS < line["bytes"] < 3 * READ_ROBOTS


async def silent(*_: object) -> None:
    await asyncio.Event().wait()


async def test_the_looking_for_seeds_counts_as_time_of_the_crawl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looping, "ENDS_WITHIN_S", 0.1)
    async with stranger() as there:
        host = there.url("").removeprefix("http://")
        options = CrawlOptions(
            seeds=(host, there.lay("/known")),
            out=tmp_path / "out",
            delay_s=0.0,
            max_time_s=1.0,
            allow_networks=LOOPBACK,
        )
        there.lay_raw("/robots.txt", silent)
        outcome = await asyncio.wait_for(crawl(options, Listener()), 20)
        assert (outcome.why, outcome.identity.seeds) == ("max-time", [there.url("/known")])
        with pytest.raises(CrawlGuideError, match=r"no seed can be reached: .*: its robots.txt has not come in time"):
            await asyncio.wait_for(crawl(replace(options, seeds=(host,), out=tmp_path / "two"), Listener()), 20)


async def waiting_at_its_limit(out: Path, view: Listener, released: asyncio.Event) -> Outcome:
    """A crawl of one page, which answers once somebody lets it."""
    async with stranger() as there:

        async def slow(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await released.wait()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>late</title>")
            await writer.drain()

        start = there.lay_raw("/", slow)
        options = CrawlOptions(seeds=(start,), out=out, delay_s=0.0, max_pages=1, allow_networks=LOOPBACK)
        return await asyncio.wait_for(crawl(options, view), 30)


async def test_at_its_limit_a_crawl_waits_for_the_pages_that_it_has_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looping, "ENDS_WITHIN_S", 0.1)
    released = asyncio.Event()

    class Patient(Listener):
        def show(self, loop: Any) -> None:
            if loop.ended:
                asyncio.get_running_loop().call_later(0.5, released.set)

    outcome = await waiting_at_its_limit(tmp_path / "out", Patient(), released)
    assert (outcome.why, outcome.tally.requests, outcome.tally.pages) == ("max-pages", 1, 1)


async def test_ctrl_c_once_at_a_limit_ends_the_waiting_and_saves(tmp_path: Path) -> None:
    class Impatient(Listener):
        def show(self, loop: Any) -> None:
            if loop.ended and not self.said[-1].startswith("ending: "):
                os.kill(os.getpid(), signal.SIGINT)

    view = Impatient()
    outcome = await waiting_at_its_limit(tmp_path / "out", view, asyncio.Event())
    assert view.said[-1].startswith("ending: what is under way is given back")
    assert (outcome.why, outcome.tally.requests, outcome.stats["leased"]) == ("max-pages", 0, 0)
    assert (tmp_path / "out" / "pages.parquet").exists()


class Denying(AsyncGuide):
    """It may say no at any time."""

    denies = False

    async def ask(self, message: Any) -> Any:
        if self.denies:
            raise Forbidden("no more")
        return await super().ask(message)


class Unkept:
    """Nothing becomes of what is fetched."""

    def add(self, line: PageLine, fetched: Fetched, report: Fetch) -> int:
        return 0

    def answered(self, number: int, relevance: float | None) -> None:
        pass


@pytest.mark.parametrize("ends", ["cancelled", "fails"])
async def test_a_loop_leaves_nothing_under_way_however_it_ends(monkeypatch: pytest.MonkeyPatch, ends: str) -> None:
    monkeypatch.setattr(looping, "ENDS_WITHIN_S", 0.1)

    async with Denying.open() as guide, stranger() as there:
        await guide.define("c", {"policy": {"robots": "ignore", "default_delay_s": 0}})
        await guide.seed("c", [there.lay_raw("/silent", silent)])
        options = FetchOptions(allow_networks=LOOPBACK)
        async with Assignments(guide, "c") as assignments, looping.fetchers(options) as both:
            loop = looping.CrawlLoop(assignments, both, Unkept(), Tally(), agent="crawlguide")
            running = asyncio.create_task(loop.run())
            while not there.requests:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
            if ends == "fails":
                guide.denies = True
            else:
                running.cancel()
            with pytest.raises(asyncio.CancelledError if ends == "cancelled" else Forbidden):
                await asyncio.wait_for(running, 30)
            assert loop.under_way == 0
