"""A crawl that was ended goes on where it was: killed at any moment, by Ctrl-C, or at its limit."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest

from crawlguide import Guide
from crawlguide.core.errors import ConfigError, DataError
from crawlguide.core.messages import Fetch, Outlink
from crawlguide.crawler import journal
from crawlguide.crawler.fetched import Fetched
from crawlguide.crawler.folder import CrawlFolder
from crawlguide.crawler.lines import PageLine
from crawlguide.crawler.options import CrawlOptions
from crawlguide.crawler.outputs import Outputs
from crawlguide.crawler.run import crawl
from tests.crawler.crawling import Listener, Place, lines
from tests.crawler.strangers import LOOPBACK, stranger
from tests.gateway.conftest import SCRIPT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE_S = 100


def begun(place: Place, out: Path, *more: str) -> subprocess.Popen[str]:
    """A crawl in a process of its own."""
    usual = [*place.task.seeds["portal"], "--topic", place.task.name, "--delay", "0", "--concurrency", "4"]
    words = [str(SCRIPT), "crawl", *(more or usual), "--out", str(out), "--proxy", place.proxy, "--max-pages", "90"]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended_after(place: Place, requests: int, process: subprocess.Popen[str], number: signal.Signals) -> str:
    """End it by a signal once the web was asked for so many pages; what it said."""
    until = time.monotonic() + PATIENCE_S
    while len(place.requested()) < requests and time.monotonic() < until and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE_S)
    return said


def known(out: Path) -> set[str]:
    """What the guide knows as done."""
    with Guide.open(out / "guide") as guide:
        crawl = next(iter(guide.stats()["crawls"]))
        return {one["url"] for one in guide.urls(crawl, "done") if one["status"]}


def check_archive(out: Path) -> None:
    command = [sys.executable, "-m", "warcio.cli", "check", str(out / "pages.warc.gz")]
    subprocess.run(command, check=True, timeout=60, capture_output=True)


def test_after_kill_9_nothing_is_fetched_again_and_nothing_is_lost(place: Place, tmp_path: Path) -> None:
    out = tmp_path / "out"
    acknowledged: set[str] = set()
    for requests in (25, 55):
        process = begun(place, out, *(["--resume"] if acknowledged else []))
        ended_after(place, requests, process, signal.SIGKILL)
        before = len(place.served.log)
        acknowledged |= known(out)
    assert acknowledged
    outcome = place.crawled(out, resume=True, max_pages=90)
    again = {request.url for request in place.served.log[before:]}
    assert not again & acknowledged
    written = Counter(line["url"] for line in lines(out))
    assert {count for url, count in written.items() if url in acknowledged} == {1}
    assert set(written) == known(out)
    assert outcome.tally.requests == 90
    check_archive(out)
    table = pyarrow.parquet.read_table(out / "links.parquet")
    sources = set(table.column("source").to_pylist())
    assert sources == {line["url"] for line in lines(out) if line["links"] or line["redirected_to"]}


def test_ctrl_c_saves_and_says_how_to_go_on(place: Place, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = begun(place, out)
    said = ended_after(place, 20, process, signal.SIGINT)
    assert process.returncode == 130, said
    assert f"crawlguide crawl --resume --out {out}" in said
    assert "Traceback" not in said
    requests = len(place.requested())
    assert len([line for line in lines(out) if line["kind"] == "page"]) == requests < 90
    assert place.crawled(out, resume=True, max_pages=40).tally.requests == 40
    assert Counter(place.requested()).most_common(1)[0][1] == 1


def test_a_crawl_at_its_limit_goes_on_with_a_higher_one(place: Place, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert place.crawled(out, max_pages=10).why == "max-pages"
    first = lines(out)
    assert place.crawled(out, resume=True, max_pages=30, topic=None, seeds=(), delay_s=None).tally.requests == 30
    assert lines(out)[: len(first)] == first
    assert pyarrow.parquet.read_table(out / "pages.parquet").num_rows == len(lines(out))


# The files by themselves: every moment at which a process can end.


@pytest.fixture
def folder(tmp_path: Path) -> CrawlFolder:
    (tmp_path / "out").mkdir()
    return CrawlFolder(tmp_path / "out")


def opened(folder: CrawlFolder, heard: Callable[[PageLine], object] = str) -> Outputs:
    return Outputs(folder, (heard,), warc=True, parquet=True)


def killed(outputs: Outputs, folder: CrawlFolder) -> CrawlFolder:
    """The folder as it lies on the disk at this moment."""
    left = CrawlFolder(folder.path.with_name("left"))
    shutil.copytree(folder.path, left.path)
    outputs.close()
    return left


def added(outputs: Outputs, number: int) -> int:
    url = f"https://a.example/{number}"
    line = PageLine(url=url, status=200, fetched=f"2026-01-01T00:00:0{number}Z")
    report = Fetch(url=url, status=200, fetch_time=line.fetched, outlinks=[Outlink(f"{url}/link")])
    return outputs.add(line, Fetched(url, 200, body=b"<p>words", headers=(("content-type", "text/html"),)), report)


def told_again(folder: CrawlFolder, heard: Callable[[PageLine], object] = str) -> list[str]:
    """Open the folder and tell the guide what it may not know; what that was."""
    outputs = opened(folder, heard)
    told = outputs.unanswered
    for entry in told:
        outputs.answered(entry.number, 0.5)
    outputs.close()
    return [entry.report.url[-1] for entry in told]


def urls(folder: CrawlFolder) -> list[str]:
    return [line["url"][-1] for line in lines(folder.path)]


def test_what_the_guide_has_not_answered_is_told_again(folder: CrawlFolder) -> None:
    outputs = opened(folder)
    for number in range(3):
        added(outputs, number)
    outputs.answered(2, 0.7)
    left = killed(outputs, folder)
    assert told_again(left) == ["0", "1", "2"]  # the answer was not written yet
    assert urls(left) == ["0", "1", "2"]


def test_an_answer_is_in_the_journal_with_the_next_request(folder: CrawlFolder) -> None:
    outputs = opened(folder)
    outputs.answered(added(outputs, 0), 0.9)
    added(outputs, 1)
    heard: list[PageLine] = []
    assert told_again(killed(outputs, folder), heard.append) == ["1"]
    assert [(line.url[-1], line.relevance) for line in heard] == [("0", 0.9), ("1", 0.5)]


@pytest.mark.parametrize("lost", [1, 30, 150])
def test_a_request_that_was_being_written_is_gone_with_its_record(folder: CrawlFolder, lost: int) -> None:
    outputs = opened(folder)
    outputs.answered(added(outputs, 0), 0.9)
    length = folder.warc.stat().st_size
    added(outputs, 1)
    left = killed(outputs, folder)
    journal.cut(left.journal, left.journal.stat().st_size - lost)
    told_again(left)
    assert left.warc.stat().st_size == length
    assert urls(left) == ["0"]
    check_archive(left.path)


def test_lines_that_were_not_saved_are_written_anew(folder: CrawlFolder) -> None:
    outputs = opened(folder)
    for number in range(4):
        outputs.answered(added(outputs, number), 0.1)
    outputs.flush()
    left = killed(outputs, folder)
    told_again(left)
    assert urls(left) == ["0", "1", "2", "3"]
    rows = pyarrow.parquet.read_table(left.path / "links.parquet").column("source").to_pylist()
    assert [row[-1] for row in rows] == ["0", "1", "2", "3"]


def test_a_closed_crawl_that_goes_on_keeps_its_links(folder: CrawlFolder) -> None:
    for number in range(3):
        outputs = opened(folder)
        outputs.answered(added(outputs, number), 0.1)
        outputs.close()
    rows = pyarrow.parquet.read_table(folder.path / "links.parquet").column("source").to_pylist()
    assert [row[-1] for row in rows] == ["0", "1", "2"]
    assert list(folder.parts.iterdir()) == []


# What people do to the files between two runs.


def run_of(folder: CrawlFolder, *numbers: int, warc: bool = True) -> list[str]:
    """A run that fetches these; what it said was missing."""
    outputs = Outputs(folder, (), warc=warc, parquet=True)
    for number in numbers:
        outputs.answered(added(outputs, number), 0.1)
    outputs.close()
    return outputs.missing


def sources(folder: CrawlFolder) -> list[str]:
    rows = pyarrow.parquet.read_table(folder.path / "links.parquet").column("source").to_pylist()
    return [row[-1] for row in rows]


def archived(folder: CrawlFolder) -> list[str]:
    from warcio.archiveiterator import ArchiveIterator

    check_archive(folder.path)
    with folder.warc.open("rb") as file:
        return [record.rec_headers.get_header("WARC-Target-URI")[-1] for record in ArchiveIterator(file)
                if record.rec_type == "response"]  # fmt: skip


@pytest.mark.parametrize("left", [None, b""])
def test_without_its_journal_a_crawl_keeps_all_that_is_whole(folder: CrawlFolder, left: bytes | None) -> None:
    run_of(folder, 0, 1, 2)
    folder.journal.unlink()
    if left is not None:
        folder.journal.write_bytes(left)
    with folder.pages.open("ab") as pages, folder.warc.open("ab") as warc:
        pages.write(b'{"url": "https://a.exam')
        warc.write(b"\x1f\x8b\x08")
    assert run_of(folder, 3) == []
    assert urls(folder) == archived(folder) == sources(folder) == ["0", "1", "2", "3"]


def test_a_run_without_an_archive_leaves_that_of_the_runs_before(folder: CrawlFolder) -> None:
    run_of(folder, 0)
    run_of(folder, 1, warc=False)
    run_of(folder, 2)
    assert urls(folder) == ["0", "1", "2"]
    assert archived(folder) == ["0", "2"]


def test_of_an_archive_that_was_cut_off_the_whole_records_are_kept(folder: CrawlFolder) -> None:
    run_of(folder, 0, 1)
    journal.cut(folder.warc, folder.warc.stat().st_size - 30)
    assert run_of(folder, 2) == [f"{folder.warc} is shorter than this crawl left it: it goes on with what is there"]
    assert archived(folder) == ["0", "2"]


def test_of_pages_that_were_cut_off_the_whole_lines_are_kept(folder: CrawlFolder) -> None:
    run_of(folder, 0, 1)
    journal.cut(folder.pages, folder.pages.stat().st_size - 30)
    assert run_of(folder, 2) == [f"{folder.pages} is shorter than this crawl left it: it goes on with what is there"]
    assert urls(folder) == ["0", "2"]
    folder.pages.unlink()
    assert len(run_of(folder, 3)) == 1
    table = pyarrow.parquet.read_table(folder.path / "pages.parquet")
    assert [url[-1] for url in table.column("url").to_pylist()] == urls(folder) == ["3"]


def test_links_that_nobody_can_read_are_set_aside(folder: CrawlFolder) -> None:
    run_of(folder, 0)
    journal.cut(folder.path / "links.parquet", 100)
    assert "links.parquet cannot be read" in run_of(folder, 1)[0]
    assert sources(folder) == ["1"]
    assert (folder.path / "links.unreadable").stat().st_size == 100


def test_links_that_were_taken_away_are_said_to_be_gone(folder: CrawlFolder) -> None:
    run_of(folder, 0)
    (folder.path / "links.parquet").unlink()
    assert "links of earlier runs are no longer in" in run_of(folder, 1)[0]
    assert sources(folder) == ["1"]


def test_a_line_that_the_crawler_did_not_write_is_named(folder: CrawlFolder) -> None:
    run_of(folder, 0)
    folder.pages.write_bytes(b"x\n" * 2_000)
    with pytest.raises(DataError, match=r"pages\.jsonl: line 1: expected a line of this crawler"):
        run_of(folder, 1)


def test_of_what_a_full_disk_cuts_off_nothing_stays(folder: CrawlFolder) -> None:
    """The next one that is written, when there is room again, begins a line of its own."""
    outputs = opened(folder)
    added(outputs, 0)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (folder.journal.stat().st_size + 50, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            added(outputs, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    added(outputs, 5)
    left = killed(outputs, folder)
    assert told_again(left) == ["0", "5"]
    assert urls(left) == ["0", "5"]
    check_archive(left.path)


def test_a_crawl_keeps_all_its_links_or_none(place: Place, tmp_path: Path) -> None:
    place.crawled(tmp_path / "with", max_pages=5)
    with pytest.raises(ConfigError, match="--resume: --no-parquet: this crawl was begun with Parquet files"):
        place.crawled(tmp_path / "with", resume=True, max_pages=10, parquet=False)
    place.crawled(tmp_path / "without", max_pages=5, parquet=False, crawl="other")
    place.crawled(tmp_path / "without", max_pages=10, resume=True, crawl="other")
    assert not list((tmp_path / "without").glob("*.parquet"))


def test_a_crawl_that_was_made_meanwhile_is_not_overwritten(place: Place, tmp_path: Path) -> None:
    reference = tmp_path / "reference"
    os.mkfifo(reference)
    with ThreadPoolExecutor() as threads:
        slow = threads.submit(place.crawled, tmp_path / "out", reference=str(reference))
        with reference.open("w") as text:  # it waits for its reference now
            place.crawled(tmp_path / "out", max_pages=5)
            text.write("words")
        with pytest.raises(ConfigError, match="holds a crawl already"):
            slow.result(timeout=PATIENCE_S)


async def test_a_crawl_that_goes_on_has_the_name_that_it_had(tmp_path: Path) -> None:
    async with stranger() as server:
        server.lay("/robots.txt", b"User-agent: *\nAllow: /\n")
        server.lay("/", b"<p>Garden plants <a href='/a'>more</a>", Content_Type="text/html")
        server.lay("/a", b"<p>Roses", Content_Type="text/html")
        begun = CrawlOptions(
            seeds=(server.url("/"),), out=tmp_path, max_pages=1, delay_s=0.0, allow_networks=LOOPBACK,
            user_agent="GardenBot/2.1", contact="mailto:gardener@example.org",
        )  # fmt: skip
        await crawl(begun, Listener())
        await crawl(CrawlOptions(out=tmp_path, resume=True, max_pages=2), Listener())
    named = b"GardenBot/2.1 (+mailto:gardener@example.org)"
    assert any(request.startswith(b"GET /a ") for request in server.requests)
    assert all(named in request for request in server.requests)


def test_a_crawl_that_goes_on_keeps_its_limits_unless_one_is_named(place: Place, tmp_path: Path) -> None:
    out, words = tmp_path / "out", [str(SCRIPT), "crawl", "--out", str(tmp_path / "out")]
    process = begun(place, out, *place.task.seeds["portal"], "--topic", place.task.name, "--delay", "0")
    process.communicate(timeout=PATIENCE_S)
    assert len(place.requested()) == 90
    for limits, requests in (([], 90), (["--max-pages", "95"], 95), ([], 95)):
        subprocess.run([*words, "--resume", *limits], check=True, capture_output=True, timeout=PATIENCE_S)
        assert len(place.requested()) == requests
