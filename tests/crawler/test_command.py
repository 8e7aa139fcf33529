"""`crawlguide crawl` as a person types it: what it prints, what it leaves, and how it fails."""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from crawlguide import AsyncClient, Client, lab
from crawlguide.core.errors import ConfigError
from crawlguide.crawler import limits, options
from crawlguide.gateway.client.assignments import Assignments
from crawlguide.lab.pages import Page
from tests.cli.conftest import commands
from tests.crawler.crawling import Place, Site, lines
from tests.docs.blocks import blocks
from tests.gateway.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Here = Callable[..., subprocess.CompletedProcess[str]]


def test_a_crawl_ends_with_a_summary_a_plot_and_its_files(here: Here, place: Place, tmp_path: Path) -> None:
    out = tmp_path / "plants"
    ended = here("crawl", *place.task.seeds["portal"], "--topic", place.task.name, "--max-pages", 60, "--delay", 0,
                 "--proxy", place.proxy, "--out", out)  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    for words in ("as many pages were requested as --max-pages says", "└──", "what to try next", "report.html"):
        assert words in ended.stdout
    names = {
        "crawl.json",
        "crawl.ndjson",
        "pages.jsonl",
        "pages.parquet",
        "links.parquet",
        "pages.warc.gz",
        "report.html",
    }
    assert names < {path.name for path in out.iterdir()}
    assert "\x1b" not in ended.stdout + ended.stderr


def shown() -> dict[str, str]:
    """The commands of its help and of all pages, by where each stands."""
    helped = re.findall(r"Example: (crawlguide .*)", commands()["crawl"].help)
    lines = [("help", line) for line in helped]
    lines += [(block.page, line) for block in blocks("") for line in block.text.splitlines()]
    found = [(page, line) for page, line in lines if line.startswith("crawlguide crawl ") and "…" not in line]
    return {f"{page} {line[17:57]}": line.removeprefix("crawlguide ") for page, line in found}


@pytest.mark.parametrize("name", shown())
def test_every_example_runs(here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """On a web that has the hosts they name, with a guide where they name one."""
    monkeypatch.chdir(tmp_path)
    words = shlex.split(shown()[name])
    (tmp_path / "sample.html").write_text("<title>An index</title><p>Rows of a table in order, found by a query.")
    with lab.served(Site(), slowest_s=0) as served, serving(tmp_path) as guide:
        words = [guide.url if word.startswith("https://guide.") else word for word in words]
        proxy = ["--proxy", f"http://127.0.0.1:{served.port}"]
        quick = [*proxy, "--delay", "0", "--max-pages", "20"]
        if "--resume" in words:
            first = ("crawl", "example.com", "--topic", "database internals", "--out", words[words.index("--out") + 1])
            assert here(*first, *quick).returncode == 0
            quick = proxy
        if "--recrawl-after" in words:  # it would wait for the pages to be due again
            quick += ["--max-time", "3s"]
        ended = here(*words, *quick)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / words[words.index("--out") + 1] / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "SEED: expected a URL or a host to begin with"),
        (("http://",), "SEED: "),
        (("http://a.example/", "--max-time", "soon"), "--max-time: expected a time above 0 such as 90s"),
        *(
            (("http://a.example/", option, " "), f"{option}: expected some text, got ' '")
            for option in ("--topic", "--keywords", "--reference", "--max-time", "--guide")
        ),
        (("http://a.example/", "--until", "all"), "--until: expected a share such as"),
        *(
            (("http://a.example/", "--until", share), "--until: expected a share such as")
            for share in ("0", "101", "200 %")
        ),
        (("http://a.example/", "--until", "95 %"), "--until: it counts relevant pages, and this crawl has no words"),
        (("http://a.example/", "--min-harvest", "0.1"), "--min-harvest: it counts relevant pages"),
        (("http://a.example/", "--user-agent", "12"), "--user-agent: expected a name"),
        (("http://a.example/", "--delay", "100000"), "--delay: expected a number from 0 to 86400, got 100000"),
        (("http://a.example/", "--delay", "inf"), "--delay: expected a number from 0 to 86400, got inf"),
        (
            ("http://a.example/", "--recrawl-after", "99999999d"),
            "--recrawl-after: expected a number from 1 to 3200000000",
        ),
        (("http://a.example/", "--topic", "x" * 100_001), "--topic: expected text of at most 100000 characters, got"),
        (("http://a.example/", "--keywords", "x," * 1_001), "--keywords: expected a list"),
        (("http://a.example/", "--user-agent", "x" * 300), "--user-agent: expected a name of 1 to 253 characters, got"),
        (("http://a.example/", "--topic", "a\udcff"), "--topic: expected text in UTF-8, got 'a\\udcff'"),
        (("http://a.example/", "--deny", "a\udcff"), "--deny: expected text in UTF-8, got 'a\\udcff'"),
        (("--resume",), "--resume: there is no crawl in"),
        (("http://a.example/", "--guide", "nowhere"), "--guide: expected one such as http://127.0.0.1:8080"),
        (("http://a.example/", "--proxy", "127.0.0.1:8090"), "--proxy: "),
        (("http://a.example/", "--allow-network", "banana"), "--allow-network: "),
    ],
)
def test_wrong_usage_says_what_was_expected(here: Here, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    ended = here("crawl", *words, "--out", tmp_path / "out")
    assert ended.returncode == 2
    assert said in ended.stderr
    assert not (tmp_path / "out" / "crawl.json").exists()


def test_a_crawl_that_a_key_may_not_begin_is_named(here: Here, place: Place, tmp_path: Path) -> None:
    made = here("keys", "create", "--data", tmp_path / "data", "--scope", "ask", "--scope", "tell", "--scope", "read")
    with serving(tmp_path, tmp_path / "data") as guide:
        ended = here("crawl", "site.example", "--guide", guide.url, "--crawl", "garden-plants", "--topic", "plants",
                     "--token", made.stdout.strip(), "--proxy", place.proxy,
                     "--out", tmp_path / "out")  # fmt: skip
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        "crawlguide: --guide: there is no crawl 'garden-plants' yet, and this key may not define one (scope admin):"
        " let the first crawler begin it, or correct --crawl"
    )


def test_what_the_guide_refuses_is_said_before_a_site_is_asked(here: Here, place: Place, tmp_path: Path) -> None:
    before = len(place.served.log)
    ended = here("crawl", "site.example", "--strategy", "best", "--proxy", place.proxy, "--out", tmp_path / "out")
    assert ended.returncode == 2
    assert "--strategy: " in ended.stderr
    assert len(place.served.log) == before


def test_a_refused_crawl_can_be_begun_again_in_its_folder(here: Here, place: Place, tmp_path: Path) -> None:
    """With another topic: what the guide in the folder was told of the first one is gone."""
    said = ("--proxy", place.proxy, "--delay", 0, "--max-pages", 5, "--crawl", "one", "--out", tmp_path / "out")
    assert here("crawl", "http://", "--topic", "one thing", *said).returncode == 2
    ended = here("crawl", *place.task.seeds["portal"], "--topic", place.task.name, *said)
    assert ended.returncode == 0, ended.stderr
    assert f'"topic":"{place.task.name}"' in (tmp_path / "out" / "crawl.ndjson").read_text().replace(": ", ":")


def test_a_file_of_somebody_else_is_not_overwritten(here: Here, tmp_path: Path) -> None:
    theirs = tmp_path / "pages.jsonl"
    theirs.write_text("mine\n")
    ended = here("crawl", "http://a.example/", "--out", tmp_path)
    assert ended.returncode == 2
    assert "holds a pages.jsonl of no crawl" in ended.stderr
    assert theirs.read_text() == "mine\n"


def test_a_crawl_that_reaches_nothing_has_failed(here: Here, tmp_path: Path) -> None:
    """Nobody listens at the proxy; the guide tries again later, so the time is what ends it."""
    ended = here("crawl", "nowhere.example", "--proxy", "http://127.0.0.1:9", "--out", tmp_path / "out")
    assert ended.returncode == 1
    assert "no seed can be reached: nowhere.example" in ended.stderr


@dataclass(frozen=True)
class Closed(Site):
    """A site that wants no crawlers."""

    def fetch(self, url: str) -> Page:
        return Page(url, 200, "", "User-agent: *\nDisallow: /\n") if url.endswith("/robots.txt") else super().fetch(url)


def test_where_robots_txt_forbids_everything_nothing_is_fetched_and_that_is_said(here: Here, tmp_path: Path) -> None:
    with lab.served(Closed(), slowest_s=0) as served:
        proxy = f"http://127.0.0.1:{served.port}"
        ended = here("crawl", "http://example.com/", "--proxy", proxy, "--out", tmp_path / "out")
        asked = {request.url for request in served.log}
    assert ended.returncode == 1
    assert "robots.txt forbids every seed" in ended.stderr
    assert asked == {"http://example.com/robots.txt"}


@pytest.mark.parametrize("size", ["2m", "3m", "4m"])  # full with the first page, with the first few, and later
def test_a_full_disk_ends_it_and_resume_goes_on(here: Here, place: Place, tmp_path: Path, size: str) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "crawlguide", str(tmp_path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can only be mounted by root, where mounting is permitted")
    try:
        words = ("--max-pages", 200, "--proxy", place.proxy, "--out", tmp_path / "out")
        begun = here("crawl", *place.task.seeds["portal"], "--topic", place.task.name, "--delay", 0, *words)
        assert begun.returncode == 1
        assert f"free some space, then crawlguide crawl --resume --out {tmp_path / 'out'} goes on" in begun.stderr
        subprocess.run(["mount", "-o", "remount,size=64m", str(tmp_path)], check=True)
        assert here("crawl", "--resume", *words).returncode == 0
        pages = [line["url"] for line in lines(tmp_path / "out") if line["kind"] == "page"]
        assert len(pages) == len(set(pages)) == 200
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


@pytest.mark.parametrize(("part", "package"), [("warc", "warcio"), ("tables", "pyarrow")])
def test_without_what_an_output_needs_one_is_told_how_to_get_it(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, package: str
) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(f"crawlguide.crawler.{part}.import_module", missing)
    with lab.served(Site(), slowest_s=0) as served:
        proxy = f"http://127.0.0.1:{served.port}"
        ended = here("crawl", "example.com", "--proxy", proxy, "--delay", 0, "--out", tmp_path / "out")
    assert ended.returncode == 2
    assert f"crawl needs {package}: pip install '.[crawl]'" in ended.stderr


def test_a_crawl_ends_when_enough_is_found(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many requests it makes before the clock says that it is time to look."""
    monkeypatch.setattr(limits, "TICK_S", 60.0)
    outcome = place.crawled(tmp_path / "out", max_pages=0, until=0.3)
    assert outcome.why == "until"
    assert 100 <= outcome.tally.requests < 200
    assert "are found" in outcome.remaining


async def test_a_guide_that_is_away_is_said_once_and_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    tries = asyncio.Semaphore(0)

    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tries.release()
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as nobody:
        url = f"http://127.0.0.1:{nobody.sockets[0].getsockname()[1]}"
        async with AsyncClient(url, retries=0) as guide, Assignments(guide, "crawl", "here") as assigned:
            waiting = asyncio.create_task(assigned.next())
            async with asyncio.timeout(60):
                for _ in range(3):
                    await tries.acquire()
            assert not waiting.done()
            waiting.cancel()
    (said,) = [record.message for record in caplog.records if "is tried again" in record.message]
    assert f"{url} broke off" in said


def test_a_seed_that_may_not_be_reached_ends_it_with_the_reason(here: Here, tmp_path: Path) -> None:
    ended = here("crawl", "http://127.0.0.1:8099/", "--out", tmp_path / "out")
    assert ended.returncode == 1
    assert "127.0.0.1 leads to 127.0.0.1, which is no public address; --allow-network permits such" in ended.stderr


def test_what_goes_on_goes_through_the_same_proxy(here: Here, place: Place, tmp_path: Path) -> None:
    begun = ("crawl", *place.task.seeds["portal"], "--topic", place.task.name, "--delay", 0, "--max-pages", 20)
    assert here(*begun, "--proxy", place.proxy, "--out", tmp_path / "out").returncode == 0
    before = len(place.requested())
    ended = here("crawl", "--resume", "--out", tmp_path / "out", "--max-pages", 40)
    assert ended.returncode == 0
    assert len(place.requested()) - before == 20
    assert "; 20 of the requests in this run" in ended.stdout
    assert f"--resume --out {tmp_path / 'out'} --max-pages 80" in ended.stdout
    other = here("crawl", "--resume", "--out", tmp_path / "out", "--delay", 1)
    assert "--resume: --delay: this crawl was begun with 0.0, got 1.0" in other.stderr


def test_the_password_of_a_proxy_is_not_kept(place: Place, tmp_path: Path) -> None:
    with_password = place.proxy.replace("://", "://me:secret@")
    place.crawled(tmp_path / "out", proxy=with_password, max_pages=10)
    assert "secret" not in (tmp_path / "out" / "crawl.json").read_text()
    with pytest.raises(ConfigError, match="behind a proxy with a password: name it again with --proxy"):
        place.crawled(tmp_path / "out", resume=True, seeds=(), topic=None, delay_s=None, proxy=None)


def test_several_crawlers_share_a_served_guide(place: Place, tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        more = {"guide": server.url, "crawl": "shared", "max_pages": 40}
        place.crawled(tmp_path / "one", **more)
        place.crawled(tmp_path / "two", **more)
        with Client(server.url) as guide:
            assert guide.stats("shared")["crawls"]["shared"]["leased"] == 0
        with pytest.raises(ConfigError, match=r"'shared' is there already, and differs in goal\.topic"):
            place.crawled(tmp_path / "three", **more, topic="something else")
    pages = [{line["url"] for line in lines(tmp_path / name) if line["kind"] == "page"} for name in ("one", "two")]
    assert [len(some) for some in pages] == [40, 40]
    assert not pages[0] & pages[1]


def test_a_crawl_ends_where_the_harvest_is_too_low(place: Place, tmp_path: Path) -> None:
    outcome = place.crawled(tmp_path / "out", min_harvest=0.99, max_pages=0)
    assert outcome.why == "min-harvest"
    assert outcome.tally.requests >= 100


def test_a_crawl_ends_when_nothing_is_left_that_is_likely_enough(here: Here, place: Place, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = here("crawl", *place.task.seeds["portal"], "--topic", place.task.name, "--min-p", 0.3, "--delay", 0,
                 "--proxy", place.proxy, "--out", out)  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "nothing is left that has the chance --min-p asks for" in ended.stdout
    assert re.search(r"waiting +[1-9]", ended.stdout)
    seeds = set(place.task.seeds["portal"])
    pages = [line for line in lines(out) if line["kind"] == "page" and line["url"] not in seeds]
    assert pages
    assert all(line["p"] >= 0.3 for line in pages)


def test_of_a_crawl_without_a_topic_no_harvest_is_told(here: Here, place: Place, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = here("crawl", *place.task.seeds["portal"], "--max-pages", 20, "--delay", 0,
                 "--proxy", place.proxy, "--out", out)  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    for said in (ended.stdout, ended.stderr, (out / "report.html").read_text()):
        assert "relevant" not in said.lower()


def test_a_crawl_ends_when_its_time_is_over(place: Place, tmp_path: Path) -> None:
    assert place.crawled(tmp_path / "out", max_time_s=0.3, max_pages=0, delay_s=1.0).why == "max-time"


@pytest.mark.parametrize(("text", "value"), [("90", 90), ("90s", 90), ("30m", 1_800), ("2h", 7_200), ("1.5 h", 5_400)])
def test_times_have_units(text: str, value: float) -> None:
    assert options.seconds(text) == value


@pytest.mark.parametrize("text", ["0", "0s", "-1s", "soon", "5 weeks", ""])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--max-time: expected a time above 0 such as 90s"):
        options.seconds(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("95 %", 0.95), ("95%", 0.95), ("95", 0.95), ("0.95", 0.95), ("0.8", 0.8), ("1.5", 0.015), (" 1 %", 0.01),
        ("1", 1.0), ("1.0", 1.0), ("100", 1.0), ("100 %", 1.0), ("100.0", 1.0),
    ],
)  # fmt: skip
def test_shares_are_percentages_or_fractions(text: str, value: float) -> None:
    assert options.share(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["0", "0 %", "101", "100.1 %", "200 %", "-1", "95 % of it", "all", ""])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r'--until: expected a share such as "95 %" or 0.95, got'):
        options.share(text)


def test_the_name_in_robots_txt_is_that_of_the_agent() -> None:
    assert options.token("MyBot/1.0 (+https://me.example/)") == "MyBot"
