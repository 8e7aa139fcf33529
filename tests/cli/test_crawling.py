"""next, report, explain and status: a crawler by hand, against a real server and a real folder."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import httpx
import pytest

from crawlguide import Guide
from crawlguide.cli import report
from crawlguide.core import config
from crawlguide.core.messages import ERRORS, VERSION
from tests import tally
from tests.cli.conftest import Ended, done, refused
from tests.gateway.conftest import ENDS_WITHIN_S, SCRIPT, Served, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGE = "https://example.com/"
SECOND_S = 1.0


@pytest.fixture(params=["server", "folder"])
def where(request: pytest.FixtureRequest, served: Served) -> list[str]:
    """The options that say who answers: every command gives the same with both."""
    return ["--url", served.url] if request.param == "server" else ["--data", "folder"]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def test_who_waits_for_a_robots_txt_is_told_so(here: Callable[..., Ended], tmp_path: Path) -> None:
    with serving(tmp_path, robots=True) as server:  # it may not go to this machine, so it never gets the file
        asked = ["next", "--crawler", "me", "--seed", "http://127.0.0.1/", "--url", server.url]
        assert "robots.txt of some hosts could not be read yet" in done(here(*asked))


def test_a_crawl_by_hand(here: Callable[..., Ended], where: list[str], crawl: str) -> None:
    about = ["--crawl", crawl, *where]
    table = done(here("next", "--crawler", "me", "--seed", PAGE, *about))
    assert re.match(r"url +score +p +reason +wait\n" + re.escape(PAGE) + r" +\d\.\d{3} +0\.\d\d +\S+ +now\n", table)
    assert "leased until 20" in table
    assert "nothing right now" in done(here("next", "--crawler", "you", *about))
    links = ["--link", "/good", "--link", "https://other.example/"]
    told = done(here("report", PAGE, "--status", 200, "--relevance", 0.9, *links, "--crawler", "me", *about))
    assert told == f"ok  {PAGE}\n1 accepted, 2 new URLs\n"
    words = done(here("explain", "https://example.com/good", *about))
    assert words.startswith("It is queued; one page links here, mean relevance 0.90")
    assert re.search(r"^  state +queued\n  rank +\d of those that wait\n", words, re.MULTILINE)
    assert re.search(r"^  relevance +\+0\.\d{3} +█+$", words, re.MULTILINE)
    assert re.search(r"^  keep +seen +\S", words, re.MULTILINE)
    assert f"\npages that link to it\n  {PAGE}\n" in words
    assert words.endswith("what would have to change\n  a crawler asks while nothing better is waiting\n")
    numbers = done(here("status", *about))
    assert re.search(rf"^{crawl} +running +2 +0 +1 +0 +2 +100% +1$", numbers, re.MULTILINE)


def test_what_is_given_back_is_given_out_again(here: Callable[..., Ended], where: list[str], crawl: str) -> None:
    about = ["--crawl", crawl, "--crawler", "me", *where]
    given = json.loads(done(here("next", "--seed", PAGE, "--json", *about)))
    assert [one["url"] for one in given["assigned_urls"]] == [PAGE]
    done(here("report", PAGE, "--error", "released", *about))
    again = done(here("next", *about))
    assert again.splitlines()[1].startswith(PAGE)


def test_json_is_the_answer_of_the_wire(here: Callable[..., Ended], served: Served, crawl: str) -> None:
    about = ["--crawl", crawl, "--url", served.url, "--json"]
    advice = json.loads(done(here("next", "--crawler", "me", "--urls", 3, "--seed", PAGE, *about)))
    assert advice["metadata"]["crawl_state"] == "running"
    ack = json.loads(done(here("report", PAGE, "--status", 200, "--link", "/a", *about)))
    assert ack == {"accepted": 1, "discovered": 1, "truncated": 0, "results": [{"url": PAGE, "status": "ok"}]}
    with httpx.Client(base_url=served.url, trust_env=False) as door:
        found = door.get("/v1/explain", params={"crawl_id": crawl, "url": PAGE}).json()
        assert json.loads(done(here("explain", PAGE, *about))).keys() == found.keys()
        numbers = door.get("/v1/stats", params={"crawl_id": crawl}).json()
        assert json.loads(done(here("status", *about)))["crawls"] == numbers["crawls"]


def test_nothing_to_fetch_says_why(here: Callable[..., Ended], served: Served, crawl: str) -> None:
    about = ["--crawler", "me", "--crawl", crawl, "--url", served.url]
    assert done(here("next", *about)) == f"crawl '{crawl}': nothing is left; --seed URL adds a place to start from\n"
    httpx.post(f"{served.url}/v1/crawls/{crawl}/pause", trust_env=False).raise_for_status()
    assert done(here("next", *about)) == f"crawl '{crawl}': the crawl is paused\n"


def test_whoever_mistypes_the_name_of_a_crawl_is_told_that_it_is_new(
    here: Callable[..., Ended], where: list[str], crawl: str
) -> None:
    made, asked = f"crawlguide: crawl '{crawl}' was not there and is made now", ["next", "--crawler", "me", *where]
    assert here(*asked, "--crawl", crawl, "--seed", PAGE).stderr.startswith(made)
    assert here(*asked, "--crawl", crawl).stderr == ""
    told = here("report", PAGE, "--status", 200, "--crawl", f"{crawl}z", *where)
    assert done(told) == f"ok  {PAGE}\n1 accepted, 0 new URLs\n"
    assert told.stderr == made.replace(crawl, f"{crawl}z") + f"; did you mean '{crawl}'?\n"
    assert here(*asked, "--seed", PAGE).stderr == ""  # nobody has typed its name


def test_a_field_that_no_report_has_is_named(here: Callable[..., Ended], served: Served, crawl: str) -> None:
    link = {"url": "/a", "text": "x"}
    fetches = [{"url": PAGE, "status": 200, "relevence": 0.9, "outlinks": [link]}]
    report = json.dumps({"fetches": fetches, "crawl": crawl})
    ended = here("report", "-", "--url", served.url, "--crawl", crawl, stdin=report)
    assert done(ended).endswith("1 accepted, 1 new URLs\n")
    assert ended.stderr.splitlines()[:3] == [
        "crawlguide: report -: 'crawl' is no field of a report and says nothing; did you mean 'crawl_id'?",
        "crawlguide: report -: 'relevence' is no field of a fetch and says nothing; did you mean 'relevance'?",
        "crawlguide: report -: 'text' is no field of a link and says nothing",
    ]


def test_a_crawl_begins_with_what_another_has_learned(here: Callable[..., Ended], tmp_path: Path) -> None:
    (tmp_path / "trusted.toml").write_text(f'[crawls]\nplugins = ["{tally.PLUG}"]\n')
    asked, where = ["next", "--crawler", "me", "--seed", PAGE], ["--data", "folder", "--config", "trusted.toml"]
    with Guide.open("folder", config=config.load(tmp_path / "trusted.toml")) as guide:
        guide.define("first", {"strategy": {"kind": tally.PLUG}})
        fetches = [{"url": PAGE, "status": 200, "relevance": 1.0}]
        guide.tell({"mcp_version": VERSION, "crawler_id": "me", "crawl_id": "first", "fetches": fetches})
    for _ in range(2):  # the second time it is there
        done(here(*asked, "--crawl", "second", "--warm-start", "first", *where))
    with Guide.open("folder", config=config.load(tmp_path / "trusted.toml")) as guide:
        line = json.loads(next(iter(guide.export("second"))).splitlines()[0])
        assert line["definition"]["strategy"] == {"kind": tally.PLUG, "warm_start": "first"}
    refused(here(*asked, "--crawl", "third", "--warm-start", "frist", *where), 2, "--warm-start", "mean 'first'")


def test_a_seed_that_nobody_can_fetch_is_refused(here: Callable[..., Ended], served: Served) -> None:
    refused(here("next", "--crawler", "me", "--seed", "nowhere", "--url", served.url), 2, "--seed", "nowhere")


def test_a_report_comes_from_the_standard_input(here: Callable[..., Ended], served: Served, crawl: str) -> None:
    fetches = [{"url": f"{PAGE}{number}", "status": 200} for number in range(3)] + [{"url": "nowhere", "status": 200}]
    told = json.dumps({"fetches": fetches, "crawl_id": "another", "crawler_id": "me", "mcp_version": VERSION})
    ended = here("report", "-", "--crawl", crawl, "--url", served.url, stdin=told)
    assert done(ended).endswith("skip  nowhere: not a URL: 'nowhere'\n3 accepted, 0 new URLs\n")
    assert (
        json.loads(done(here("status", "--crawl", crawl, "--url", served.url, "--json")))["crawls"][crawl]["done"] == 3
    )


@pytest.mark.parametrize(
    ("stdin", "named"),
    [
        ("", "got nothing"),
        ("{", "expected JSON"),
        ("[1]", '{"fetches": [...]}'),
    ],
)
def test_what_is_no_report_is_refused(here: Callable[..., Ended], served: Served, stdin: str, named: str) -> None:
    refused(here("report", "-", "--url", served.url, stdin=stdin), 2, "report -", named)


def test_a_report_that_the_guide_refuses_names_the_field(here: Callable[..., Ended], where: list[str]) -> None:
    done(here("next", "--crawler", "me", "--seed", PAGE, *where))
    refused(
        here("report", "-", *where, stdin='{"fetches": 3}'), 1, "fetches: expected a list, each a JSON object, got 3"
    )
    told = '{"mcp_version": "2020-01", "fetches": []}'
    refused(here("report", "-", *where, stdin=told), 1, "mcp_version: expected '2025-11', got '2020-01'")


def test_a_report_says_what_came_of_the_fetch_in_one_place(here: Callable[..., Ended], served: Served) -> None:
    refused(here("report", PAGE, "--url", served.url), 2, "--status or --error")
    refused(here("report", "-", "--status", 200, "--url", served.url), 2, "report -", "status")


def test_a_report_of_which_nothing_was_accepted_has_failed(here: Callable[..., Ended], served: Served) -> None:
    ended = here("report", "nowhere", "--status", 200, "--url", served.url)
    assert done(ended, 1) == "skip  nowhere: not a URL: 'nowhere'\n0 accepted, 0 new URLs\n"


def test_errors_are_those_of_the_protocol() -> None:
    assert get_args(report.Problem) == ERRORS


def test_somebody_elses_words_are_shown_and_not_obeyed(here: Callable[..., Ended], served: Served, crawl: str) -> None:
    link = {"url": "/a", "anchor": "\x1b[31m[bold]red\r\n\u2028"}
    told = json.dumps({"fetches": [{"url": PAGE, "status": 200, "outlinks": [link]}]})
    about = ["--crawl", crawl, "--url", served.url]
    done(here("report", "-", *about, stdin=told))
    assert "[31m[bold]red" in done(here("explain", PAGE + "a", *about))


def test_explain_of_what_is_not_known_says_so(here: Callable[..., Ended], where: list[str]) -> None:
    done(here("next", "--crawler", "me", "--seed", PAGE, *where))
    refused(here("explain", "https://example.com/unknown", *where), 1, "is not known")
    refused(here("explain", "unknown", *where), 1, "not a URL")
    refused(here("explain", PAGE, "--crawl", "unknown", *where), 1, "no crawl named 'unknown'")
    refused(here("status", "--crawl", "unknown", *where), 1, "no crawl named 'unknown'")
    refused(here("status", "--crawl", "a/b", *where), 2, "--crawl", "without slash")


# who answers


@pytest.mark.parametrize("words", [["next", "--crawler", "me"], ["report", PAGE, "--status", "200"], ["status"]])
def test_a_server_that_is_not_there_is_said_with_how_to_start_one(here: Callable[..., Ended], words: list[str]) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    refused(here(*words, "--url", url), 1, url, "Connection refused", f"`crawlguide serve --port {port}`", "--data")


def test_without_url_and_data_the_configured_server_is_asked(
    here: Callable[..., Ended], served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRAWLGUIDE_SERVER_PORT", str(served.port))
    assert json.loads(done(here("status", "--json")))["version"]
    Path("mine.toml").write_text("[server]\nhost = '::1'\n")
    refused(here("status", "--config", "mine.toml"), 1, f"http://[::1]:{served.port}")
    monkeypatch.setenv("CRAWLGUIDE_SERVER_PORT", "0")
    refused(here("status"), 2, "--url", "server.port is 0")


def test_the_default_is_the_port_that_serve_takes() -> None:
    from crawlguide.cli.connection import configured
    from crawlguide.core.config import Config

    assert configured(Config()) == "http://127.0.0.1:8080"


def test_a_server_or_a_folder_but_not_both(here: Callable[..., Ended], served: Served) -> None:
    refused(here("status", "--url", served.url, "--data", "folder"), 2, "--data and --url")
    refused(here("status", "--url", "localhost:8080"), 2, "--url", "http://127.0.0.1:8080")
    refused(here("status", "--watch", "--data", "folder"), 2, "--watch")


def test_a_folder_is_made_for_seeds_alone(here: Callable[..., Ended]) -> None:
    refused(here("next", "--crawler", "me", "--data", "new"), 2, "new: there is none")
    refused(here("report", PAGE, "--status", 200, "--data", "new"), 2, "new: there is none")
    refused(here("status", "--data", ":memory:"), 2, ":memory:")
    refused(here("status", "--data", "n" * 300), 2, "File name too long")
    assert not Path("new").exists()
    done(here("next", "--crawler", "me", "--seed", PAGE, "--data", "new"))
    assert Path("new", "CURRENT").exists()


class Stranger(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>hello</html>")

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def stranger() -> Iterator[str]:
    """Something that answers HTTP and is no guide."""
    with HTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_somebody_else_who_answers_is_no_server_of_ours(here: Callable[..., Ended]) -> None:
    with stranger() as url:
        refused(here("status", "--url", url), 1, url, "no crawlguide server")


# watching, in processes of their own


def started(*words: str, stdout: int = subprocess.PIPE, **environment: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | environment
    return subprocess.Popen(
        [str(SCRIPT), *words], stdout=stdout, stderr=subprocess.PIPE, text=True, env={**kept, "TERM": "xterm"}
    )


def interrupted(process: subprocess.Popen[str]) -> str:
    """Ctrl-C; what it said on its way out."""
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=ENDS_WITHIN_S)
    assert process.returncode == 0
    return said


def test_watching_without_a_terminal_prints_a_block_a_second(served: Served) -> None:
    began = time.monotonic()
    with started("status", "--watch", "--url", served.url, FORCE_COLOR="1") as process:
        assert process.stdout is not None
        blocks = ["".join(iter(process.stdout.readline, "\n")) for _ in range(3)]
        assert interrupted(process) == ""
    assert time.monotonic() - began > 2 * SECOND_S
    assert all(block.startswith("crawlguide ") for block in blocks)
    assert "\x1b" not in "".join(blocks)


def test_watching_with_json_prints_a_line_a_second_until_nobody_reads(served: Served) -> None:
    with started("status", "--watch", "--json", "--url", served.url) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first, second = (json.loads(process.stdout.readline()) for _ in range(2))
        process.stdout.close()
        assert process.wait(ENDS_WITHIN_S) == 1
        assert process.stderr.read() == ""
    assert second["uptime_s"] - first["uptime_s"] > 0.9 * SECOND_S


def test_watching_on_a_terminal_stays_in_place_and_gives_the_cursor_back(served: Served) -> None:
    terminal, side = pty.openpty()
    with started("status", "--watch", "--url", served.url, stdout=side) as process:
        os.close(side)
        shown = _read_until(terminal, rb"crawlguide 0.*crawlguide 0")
        assert interrupted(process) == ""
    shown += _read_rest(terminal)
    os.close(terminal)
    assert b"\x1b[?25l" in shown  # hides the cursor
    assert b"\x1b[1A" in shown  # up again, to write over the former look
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"crawlguide 0")  # shows it at the end


def _read_until(terminal: int, pattern: bytes) -> bytes:
    shown = b""
    while not re.search(pattern, shown, re.DOTALL):
        shown += os.read(terminal, 4_096)
    return shown


def _read_rest(terminal: int) -> bytes:
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 4_096)
        except OSError:  # nobody is on the other side any more
            return shown


def test_speed_is_what_was_fetched_since_the_last_look() -> None:
    from crawlguide.cli.status import _per_s

    def numbers(**fetches: int) -> dict[str, Any]:
        return {"crawls": {name: {"fetches": count} for name, count in fetches.items()}}

    assert _per_s(numbers(a=10, b=5), numbers(a=30, b=0, c=7), 2.0) == {"a": 10.0, "b": 0.0}


def test_nobody_is_told_to_start_a_server_on_another_machine(here: Callable[..., Ended]) -> None:
    url = "https://guide.invalid:8443"
    ended = here("next", "--crawler", "me", "--seed", "https://example.com/", "--url", url)
    refused(ended, 1, f"no server answers at {url} (", "): check the name, and whether this machine can reach it")
    assert "crawlguide serve" not in ended.stderr
