"""backup, restore, export and import as people use them: real processes, real folders, a real server."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import pickle
import re
import shlex
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from queuelib.queue import LifoDiskQueue
from tests.gateway.conftest import ENDS_WITHIN_S, SCRIPT, Served, _port
from tests.support import asked, fetched, tell

from crawlguide import Guide
from crawlguide.cli import app, main
from crawlguide.core.config import Config
from crawlguide.core.errors import ConfigError, CrawlGuideError
from crawlguide.gateway import backup, transfers
from crawlguide.gateway.client import calls
from crawlguide.gateway.opening import greet, open_guide
from crawlguide.gateway.places import Folder, Remote
from crawlguide.guide.crawl import transfer
from crawlguide.store.embedded import format as formats
from crawlguide.store.embedded import keyspaces
from crawlguide.store.embedded.disk import Disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from crawlguide.gateway.places import Place

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
Ended = subprocess.CompletedProcess[str]
DEFINITION = {"goal": {"topic": "books"}, "policy": {"default_delay_s": 0, "deny_domains": ["no.example"]}}


def crawlguide(*words: object, **more: Any) -> Ended:
    """Run the command line to its end."""
    command = [str(SCRIPT), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **more)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """The same in this process: where a process of its own would only cost the time to load."""

    def run(*words: object) -> Ended:
        monkeypatch.setattr("sys.argv", ["crawlguide", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Ended(list(map(str, words)), int(ended.value.code or 0), *capfd.readouterr())

    return run


def done(ended: Ended, code: int = 0) -> Ended:
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    return ended


def refused(ended: Ended, code: int, named: str) -> None:
    """One line that names what is wrong, and nothing done."""
    assert named in done(ended, code).stderr
    assert ended.stderr.count("\n") == 1
    assert ended.stdout == ""


def raising(named: str) -> pytest.RaisesExc[CrawlGuideError]:
    return pytest.raises(CrawlGuideError, match=named)


@contextmanager
def serving(data: Path) -> Iterator[Served]:
    """`crawlguide serve` over a folder, ended in the way an operator ends it."""
    ready, stderr = data.with_name(data.name + ".ready"), data.with_name(data.name + ".stderr")
    command = [str(SCRIPT), "serve", "--data", str(data), "--port", "0", "--ready-file", str(ready)]
    with stderr.open("w") as said, subprocess.Popen(command, stderr=said, text=True) as process:
        try:
            server = Served(process, _port(process, ready, stderr), stderr)
            yield server
            assert server.stop() == 0, server.said()
            assert "Traceback" not in server.said()
        finally:
            if process.poll() is None:
                process.kill()


def crawled(data: Path) -> Path:
    """A folder with a crawl of every kind of URL: waiting, given out, done, failed, to be tried again, dropped."""
    with Guide.open(data) as guide:
        guide.define("books", DEFINITION)
        seeds: list[Any] = [
            {"url": "https://a.example/", "priority": 0.9, "metadata": {"shelf": [1, "ä"]}},
            "https://b.example/",
        ]
        guide.seed("books", [*seeds, "https://no.example/"])
        links = [f"https://{name}.example/{number}" for name in "abc" for number in range(200)]
        tell(guide, fetched("https://a.example/", *links, relevance=0.7, title="books"), crawl_id="books")
        tell(guide, fetched("https://b.example/", "/x", "/y", "https://no.example/z", relevance=0.1), crawl_id="books")
        gone, late, away, *_ = asked(guide, max_urls=8, crawl_id="books")
        moved = fetched(away, status=301, redirected_to="https://d.example/new")
        tell(guide, fetched(gone, status=404), fetched(late, error="timeout"), moved, crawl_id="books")
    return data


def lines_of(data: Path, crawl: str = "books") -> list[bytes]:
    with closing(Folder(data, Config())) as place:
        return sorted(place.exported(crawl))


def state_of(data: Path) -> str:
    with Guide.open(data) as guide:
        found: str = guide._guide._guide.store.state_hash()  # type: ignore[attr-defined]
        return found


def urls_of(data: Path, crawl: str = "default") -> set[str]:
    return {line["url"] for line in map(json.loads, lines_of(data, crawl)) if "url" in line}


def taken(place: Place, path: Path, crawl: str, kind: str = transfers.LINES) -> transfers.Tally:
    tally = transfers.Tally()
    transfers.take(place, transfers.Source(path, kind, crawl), tally, lambda _: None)
    return tally


def summary(read: int, new: int, skipped: int = 0) -> str:
    return f"{read} read, {new} new, {skipped} skipped\n"


def url_list(path: Path, urls: Sequence[str]) -> Path:
    path.write_text("".join(url + "\n" for url in urls))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that nobody has open; tests only read it."""
    return crawled(tmp_path_factory.mktemp("folder") / "data")


@pytest.fixture(scope="module")
def exported(folder: Path) -> Path:
    path = folder.with_name("books.ndjson")
    ended = done(crawlguide("export", "--crawl", "books", "--data", folder, "--output", path))
    assert ended.stderr == f"{len(path.read_bytes().splitlines())} lines in {path}\n"
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server over a folder of its own; each test uses crawls of its own."""
    with serving(crawled(tmp_path_factory.mktemp("server") / "data")) as running:
        yield running


# out of one folder, into another


def test_an_export_imported_into_another_folder_is_the_same_there(folder: Path, exported: Path, tmp_path: Path) -> None:
    ended = done(crawlguide("import", exported, "--crawl", "books", "--data", tmp_path / "new"))
    assert ended.stdout == summary(len(exported.read_bytes().splitlines()), len(urls_of(folder, "books")))
    assert lines_of(tmp_path / "new") == lines_of(folder) == sorted(exported.read_bytes().splitlines())


def test_importing_twice_changes_nothing(exported: Path, tmp_path: Path) -> None:
    states, news = [], []
    for _ in range(2):
        with closing(Folder(tmp_path, Config())) as place:
            news.append(taken(place, exported, "books").new)
        states.append(state_of(tmp_path))
    assert states[0] == states[1]
    assert news == [news[0], 0]


def test_a_server_exports_into_a_pipe_from_which_another_crawl_is_imported(server: Served) -> None:
    program, url = shlex.quote(str(SCRIPT)), server.url
    pipe = f"{program} export --crawl books --url {url} | {program} import - --crawl copy --url {url}"
    ended = done(subprocess.run(pipe, shell=True, capture_output=True, text=True, timeout=60, check=False))
    with closing(Remote(url, MIB)) as place:
        original, copy = ([*place.exported(crawl)] for crawl in ("books", "copy"))
    assert ended.stdout == summary(len(original), len([line for line in original if line.startswith(b'{"url"')]))
    assert sorted(original[1:]) == sorted(copy[1:])
    assert original[0].replace(b"books", b"copy", 1) == copy[0]


def test_a_reader_that_has_had_enough_is_no_failure(server: Served) -> None:
    pipe = f"{shlex.quote(str(SCRIPT))} export --crawl books --url {server.url} | head -c 10; echo ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", pipe], capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout == '{"crawl":"0\n'
    assert ended.stderr == ""


def test_an_export_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    kept = url_list(tmp_path / "kept.ndjson", ["before"])
    with raising("nobody"), transfers.written(kept) as file:
        fail_after(file.write(b"half"))
    assert [path.name for path in tmp_path.iterdir()] == ["kept.ndjson"]
    assert kept.read_text() == "before\n"


def fail_after(_: int) -> None:
    raise CrawlGuideError("nobody answers any more")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with raising("no/such/folder"), transfers.written(tmp_path / "no" / "such" / "folder"):
        pass


def test_what_is_no_plain_file_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    with transfers.written(tmp_path / "pipe") as file:
        file.write(b"through")
    reader.join(10)
    assert read == [b"through"]
    assert (tmp_path / "pipe").is_fifo()


REFUSED = (
    '{"definition": {"strategy": {"kind": "lost"}}, "crawl": "a"}',
    '{"crawl":"a","definition":{"polcy":{}}}',
    '{"crawl"',
)
KNOWN_URL = '{"url": "https://a.example/", "state": "queued"}'


@pytest.mark.parametrize("line", REFUSED)
def test_a_definition_that_is_refused_ends_the_import_before_there_is_a_crawl_with_defaults(
    here: Callable[..., Ended], tmp_path: Path, line: str
) -> None:
    path = url_list(tmp_path / "lines.ndjson", [line, KNOWN_URL])
    refused(here("import", path, "--data", tmp_path / "data"), 1, "nothing was imported; correct that line, or define")
    with Guide.open(tmp_path / "data") as guide:
        assert guide.stats()["crawls"] == {}
        guide.define("default", {"limits": {"max_pages": 7}})
    assert done(here("import", path, "--data", tmp_path / "data")).stdout == summary(2, 1)
    assert b'"max_pages":7' in b"".join(lines_of(tmp_path / "data", "default"))


def test_a_first_line_that_nobody_understands_ends_the_import(here: Callable[..., Ended], tmp_path: Path) -> None:
    path = url_list(tmp_path / "lines.ndjson", ['{"made_by": "hand", "crawl": "a", "definition": {}}', KNOWN_URL])
    refused(here("import", path, "--data", tmp_path / "data"), 1, "nothing was imported; correct that line")
    with Guide.open(tmp_path / "data") as guide:
        assert guide.stats()["crawls"] == {}


def test_a_definition_that_is_too_long_ends_the_import(tmp_path: Path) -> None:
    lines = [f'{{"crawl": "a", "definition": {{"goal": {{"topic": "{"x" * 5_000}"}}}}}}', KNOWN_URL]
    with raising("line 1: expected at most 999 bytes"):
        list(transfers.line_batches(url_list(tmp_path / "lines.ndjson", lines), 1_000))


@pytest.mark.parametrize("wrong", ['"fetched": 1e18', '"discovered": -1e300', '"priority": 1e308', '"given": 1e9'])
def test_a_number_out_of_all_bounds_is_left_out_of_an_import(tmp_path: Path, wrong: str) -> None:
    line = f'{{"url": "https://b.example/", "state": "queued", {wrong}}}'
    with Guide.open(":memory:") as guide:
        path = url_list(tmp_path / "lines.ndjson", [KNOWN_URL, line])
        taken = guide._done(calls.import_lines("default", path.read_bytes().splitlines()))
        assert (taken.lines, taken.discovered, len(taken.skipped)) == (1, 1, 1)
        assert [one["url"] for one in guide.urls("default")] == ["https://a.example/"]


def test_a_server_refuses_lines_with_a_definition_that_it_does_not_take(server: Served, tmp_path: Path) -> None:
    with raising("definition: strategy.kind: expected one of"):
        imported(server, url_list(tmp_path / "lines", [REFUSED[0], KNOWN_URL]), "refused")
    assert "refused" not in httpx.get(f"{server.url}/v1/stats", trust_env=False).json()["crawls"]


# lists of other people's


def test_a_url_list_is_imported_without_its_bad_lines(tmp_path: Path) -> None:
    path = url_list(tmp_path / "urls.txt", ["https://a.example/1", "# mine", "", "mailto:me", "https://a.example/2"])
    ended = done(crawlguide("import", path, "--data", tmp_path / "data"))
    assert ended.stdout == summary(3, 2, 1)
    assert ended.stderr == "  skipped line 4: scheme: expected http or https, got 'mailto'\n"
    assert urls_of(tmp_path / "data") == {"https://a.example/1", "https://a.example/2"}


def test_a_packed_sitemap_is_imported(here: Callable[..., Ended], tmp_path: Path) -> None:
    entry = "<url><loc>https://a.example/{}</loc><priority>0.{}</priority></url>"
    xml = "<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>"
    entries = "".join(entry.format(number, number) for number in range(9))
    (tmp_path / "sitemap").write_bytes(gzip.compress(f"{xml}{entries}<url/></urlset>".encode()))
    ended = done(here("import", tmp_path / "sitemap", "--crawl", "shop", "--data", tmp_path / "data"))
    assert ended.stdout == summary(10, 9, 1)
    assert urls_of(tmp_path / "data", "shop") == {f"https://a.example/{number}" for number in range(9)}


def test_what_waits_in_a_scrapy_job_is_imported(here: Callable[..., Ended], tmp_path: Path) -> None:
    (tmp_path / "job" / "requests.queue").mkdir(parents=True)
    for name, count in (("0", 3), ("-5", 2)):
        queue = LifoDiskQueue(tmp_path / "job" / "requests.queue" / name)
        for number in range(count):
            queue.push(pickle.dumps({"url": f"https://a.example/{name}/{number}", "method": "GET"}, protocol=4))
        queue.push(pickle.dumps({"url": "https://a.example/form", "method": "POST"}, protocol=4))
        queue.close()
    ended = done(here("import", tmp_path / "job", "--data", tmp_path / "data"))
    assert ended.stdout == summary(7, 5, 2)
    assert {f"https://a.example/-5/{number}" for number in range(2)} < urls_of(tmp_path / "data")


def test_a_file_of_nothing_but_nonsense_fails_with_the_first_ten_reasons(
    here: Callable[..., Ended], tmp_path: Path
) -> None:
    path = url_list(tmp_path / "nonsense", ["no\x1b[31mnsense"] * 25)
    ended = done(here("import", path, "--data", tmp_path / "data"), 1)
    assert ended.stdout == summary(25, 0, 25)
    assert ended.stderr.count("  skipped line ") == transfers.REASONS
    assert ended.stderr.endswith("  and 15 more\n")
    assert "\x1b" not in ended.stderr


# batches


def imported(server: Served, path: Path, crawl: str, kind: str = transfers.LINES) -> transfers.Tally:
    with closing(Remote(server.url, Config().server.max_message_bytes)) as place:
        return taken(place, path, crawl, kind)


def discovered(server: Served, crawl: str) -> int:
    found = httpx.get(f"{server.url}/v1/stats", trust_env=False).json()["crawls"]
    return int(found[crawl]["discovered"]) if crawl in found else 0


def test_long_urls_are_sent_in_messages_that_the_server_takes(server: Served, tmp_path: Path) -> None:
    urls = [f"https://a.example/{number}/" + "x" * 8_000 for number in range(1_100)]
    tally = imported(server, url_list(tmp_path / "long", urls), "long", "urls")
    assert (tally.read, tally.new, tally.skipped) == (1_100, 1_100, 0)


def test_a_skipped_line_is_named_by_its_number_in_the_file(server: Served, tmp_path: Path) -> None:
    good = [f'{{"url": "https://a.example/{number}", "state": "queued"}}' for number in range(1_500)]
    good[1_233], good[1_300] = "nonsense", "y" * Config().server.max_message_bytes
    tally = imported(server, url_list(tmp_path / "lines", good), "numbers")
    assert (tally.read, tally.new, tally.skipped) == (1_500, 1_498, 2)
    assert {reason.partition(":")[0] for reason in tally.reasons} == {"line 1234", "line 1301"}


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n"])
def test_lines_are_cut_where_they_end(tmp_path: Path, ends: str, last: str) -> None:
    lines = ["x" * size for size in (1, 0, 70_000, 200_000, 3)]
    (tmp_path / "lines").write_text("\ufeff" + ends.join(lines) + last, newline="")
    found = [one for batch in transfers.line_batches(tmp_path / "lines", MIB) for one in batch]
    assert [one.strip() for one in found if isinstance(one, bytes)] == [line.encode() for line in lines]


@given(st.lists(st.sampled_from([b"a", b"bc", b" ", b"\n", b"\r", b"\r\n", b"\x0b", b"\x1c", b"\xc2\x85"])))
def test_lines_of_a_body_end_where_splitlines_ends_them(pieces: list[bytes]) -> None:
    body = b"".join(pieces)
    found = list(transfer.lines_of(body))
    assert found[: len(body.splitlines())] == body.splitlines()
    assert not any(found[len(body.splitlines()) :])


def test_what_stands_before_a_damage_is_imported(server: Served, tmp_path: Path) -> None:
    urls = url_list(tmp_path / "urls", [f"https://a.example/{os.urandom(32).hex()}" for _ in range(3_000)])
    (tmp_path / "cut.gz").write_bytes(gzip.compress(urls.read_bytes())[:-5_000])
    with raising("cut.gz: byte "):
        imported(server, tmp_path / "cut.gz", "cut", "urls")
    assert discovered(server, "cut") > 2_000


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b'{"crawl"', "ndjson"), (b"\xef\xbb\xbf\n <urlset>", "sitemap"), (b"https://a.example/", "urls"), (b"", "urls")],
)
@pytest.mark.parametrize("packed", [bytes, gzip.compress], ids=["plain", "packed"])
def test_a_pipe_is_known_by_what_comes_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes, kind: str, packed: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "input").write_bytes(packed(content))
    with (tmp_path / "input").open() as given:
        monkeypatch.setattr("sys.stdin", given)
        assert transfers.kind_of(Path("-"), transfers.AUTO) == kind


# copies


def test_a_backup_of_a_folder_is_restored_as_it_was(folder: Path, tmp_path: Path) -> None:
    made = done(crawlguide("backup", tmp_path / "copy", "--data", folder)).stdout.splitlines()
    assert made[0] == f"backup  {tmp_path / 'copy'}"
    assert made[2] == f"state   {state_of(folder)}"
    said = done(crawlguide("restore", tmp_path / "copy", "--data", tmp_path / "data")).stdout
    assert f"  books: {len(urls_of(folder, 'books'))} URLs: " in said
    assert state_of(tmp_path / "data") == state_of(folder)


def test_nothing_is_restored_into_a_folder_that_holds_something(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / backup.SLIP).write_text('{"version": "0", "made": "", "state_hash": ""}')
    with raising("name a new folder"):
        asyncio.run(backup.restore(tmp_path / "copy", tmp_path))


def test_a_backup_made_while_crawlers_tell_holds_all_that_was_acknowledged(
    here: Callable[..., Ended], server: Served, tmp_path: Path
) -> None:
    acknowledged: list[str] = []
    stop = threading.Event()

    def tell_all_the_time() -> None:
        with httpx.Client(base_url=server.url, trust_env=False) as client:
            while not stop.is_set():
                url = f"https://{len(acknowledged) % 50}.example/{len(acknowledged)}"
                message = {"mcp_version": "2025-11", "crawler_id": "c", "crawl_id": "busy"}
                client.post("/v1/report", json=message | {"fetches": [fetched(url, "/next")]}).raise_for_status()
                acknowledged.append(url)

    crawler = threading.Thread(target=tell_all_the_time)
    crawler.start()
    try:
        while len(acknowledged) < 100:
            time.sleep(0.01)
        before = set(acknowledged)
        made = done(crawlguide("backup", tmp_path / "copy", "--url", server.url)).stdout.split()
    finally:
        stop.set()
        crawler.join(10)
    done(here("restore", tmp_path / "copy", "--data", tmp_path / "data"))
    assert made[1] == str(tmp_path / "copy")
    assert state_of(tmp_path / "data") == made[5]
    assert before < {json.loads(line)["url"] for line in lines_of(tmp_path / "data", "busy") if b'"done"' in line}


def test_of_backups_that_are_asked_for_at_once_each_is_whole(server: Served) -> None:
    """The server makes one after the other: copies of what is in memory take room, and the moment is short."""
    with httpx.Client(base_url=server.url, trust_env=False, timeout=60.0) as client, ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: client.post("/v1/backups").raise_for_status().json(), range(8)))
    assert len({one["path"] for one in made}) == 8
    assert all(backup.read_slip(Path(one["path"])).state_hash == one["state_hash"] for one in made)


def test_a_server_whose_copy_cannot_be_reached_is_told_so(tmp_path: Path) -> None:
    made = b'{"path": "/no/such/folder", "made": "now", "state_hash": "00"}'
    with foreign(made) as url, closing(Remote(url, MIB)) as place, raising("fetch it from there"):
        place.backed_up(tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []


# a folder in use, a server that is none


def test_a_folder_in_use_is_said_to_be(server: Served) -> None:
    data = server.stderr.with_name("data")
    refused(crawlguide("export", "--data", data), 2, "--url")
    refused(crawlguide("serve", "--data", data, "--port", 0), 2, "in use")


def test_a_server_says_what_it_found(server: Served) -> None:
    assert re.search(r"data opened in \d+\.\d s: crawls 1, URLs \d\d\d\n", server.said())


async def test_a_server_says_that_a_folder_was_of_an_older_format(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    guide = open_guide(tmp_path / "old", Config())
    await guide.close()
    disk = Disk(tmp_path / "old")
    folder = keyspaces.keyspace(disk, keyspaces.FOLDER, b"F")
    folder.put(b"format", formats.now().replace(b"relevance_sum", b"relevance_all"))
    disk.write({folder: folder.pending})
    disk.close()
    guide = open_guide(tmp_path / "old", Config())
    with caplog.at_level("INFO", "crawlguide"):
        await greet(guide, 0.0)
    assert f"of format {formats.VERSION} and has been brought up to date" in caplog.text
    await guide.close()


@contextmanager
def foreign(body: bytes | None) -> Iterator[str]:
    """Something else that listens: it answers every request alike, or never."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            line, _ = listener.accept()
            with line:
                line.recv(65_536)
                line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body or b""), body))

        thread = threading.Thread(target=answer, daemon=True)
        if body is not None:
            thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_server_that_never_answers_is_named() -> None:
    with foreign(None) as url, closing(Remote(url, MIB, answer_s=0.2)) as place, raising("in time"):
        place.seeded("default", [])


def test_a_server_of_another_kind_is_named() -> None:
    with foreign(b"<html>") as url, closing(Remote(url, MIB)) as place, raising("no crawlguide server"):
        place.seeded("default", [])


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://a.example", "http://", "http://a:b:c", "http://a/?q"])
def test_what_is_no_address_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"http://127\.0\.0\.1:8080"):
        Remote(url, MIB)


def test_what_a_server_refuses_is_said_in_its_words(server: Served) -> None:
    refused(crawlguide("export", "--crawl", "nobody", "--url", server.url), 1, "crawl_id: no crawl named 'nobody'")


# wrong usage


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        ("export --data here --url http://127.0.0.1:1", 2, "--data and --url"),
        ("export --url http://127.0.0.1:1", 1, "http://127.0.0.1:1"),
        ("export --data nowhere", 2, "nowhere"),
        ("import no-such-file", 2, "no-such-file"),
        ("import no-such-file --config no-such.toml", 2, "no-such.toml"),
        ("import - --data :memory:", 2, ":memory:"),
        ("import - --crawl a/b", 2, "--crawl"),
        ("backup copy", 2, "crawlguide-data"),
        ("restore nowhere", 2, "nowhere"),
    ],
)
def test_what_cannot_work_is_said_in_one_line(tmp_path: Path, words: str, code: int, named: str) -> None:
    refused(crawlguide(*words.split(), cwd=tmp_path, stdin=subprocess.DEVNULL), code, named)
    assert list(tmp_path.iterdir()) == []


def test_every_command_of_the_documentation_exists_with_its_options() -> None:
    command: Any = typer.main.get_command(app)
    shown = [page.read_text() for page in (ROOT / "README.md", ROOT / "docs" / "data-folder.md")]
    used = [line for text in shown for line in re.findall(r"^(?:.*\| *)?crawlguide ([a-z]+ .*)$", text, re.MULTILINE)]
    assert {line.split()[0] for line in used} >= {"serve", "backup", "restore", "export", "import"}
    for line in used:
        verb, *words = shlex.split(line, comments=True)
        named = command.commands[verb]
        named = named.commands[words[0]] if hasattr(named, "commands") else named
        known = {name for option in named.params for name in option.opts}
        assert {word for word in words if word.startswith("--")} <= known, line


# stopping in the middle


def interrupted(process: subprocess.Popen[str], server: Served, crawl: str) -> str:
    """Ctrl-C when the first batch has arrived; what was said."""
    until = time.monotonic() + 30
    while not discovered(server, crawl) and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(ENDS_WITHIN_S) == 130
    assert process.stderr
    return process.stderr.read()


def test_ctrl_c_ends_an_import_between_two_batches_and_the_same_again_does_the_rest(
    server: Served, tmp_path: Path
) -> None:
    path = url_list(tmp_path / "urls", [f"https://{number % 100}.example/{number}" for number in range(20_000)])
    command = [str(SCRIPT), "import", str(path), "--crawl", "stopped", "--url", server.url]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        said = interrupted(process, server, "stopped")
    kept = discovered(server, "stopped")
    assert 0 < kept < 20_000
    assert said.startswith(
        f"stopped: {kept} read, {kept} new, 0 skipped; that much is kept, and the same command again "
    )
    tally = imported(server, path, "stopped", "urls")
    assert (tally.read, tally.new) == (20_000, 20_000 - kept)


def test_ctrl_c_ends_an_import_that_waits_for_its_input(server: Served) -> None:
    command = [str(SCRIPT), "import", "-", "--crawl", "waiting", "--url", server.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdin
        process.stdin.write("".join(f"https://a.example/{number}\n" for number in range(1_500)))
        process.stdin.flush()
        assert interrupted(process, server, "waiting").startswith("stopped: 1000 read, 1000 new, 0 skipped")
