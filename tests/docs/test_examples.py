"""The examples run: the crawler over a small web and a real guide, and the Python of docs/clients.md."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crawlguide import Client
from crawlguide.core.definition import Policy
from crawlguide.gateway.client.calls import KINDS
from crawlguide.gateway.client.patience import DEADLINE_S, RETRIES, TIMEOUT_S
from tests.gateway.conftest import Served, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
CRAWLER = ROOT / "examples" / "crawler.py"
CLIENTS = (ROOT / "docs" / "clients.md").read_text()
AS_IN_THE_PAGE = "http://127.0.0.1:8080"
ROBOTS = b"User-agent: *\nDisallow: /private\n"
FOUND = {
    "/": b'<a href="/one">1</a> <a href="two#part">2</a> <a href="/private/diary">no</a> <a>none</a>',
    "/one": b'<a href="/">home</a> <a href="/moved">moved</a> <a href="mailto:me@example.com">me</a>',
    "/two": b'<a href="http://elsewhere.example/">away</a> <a href="/missing">gone</a> <a href="http://[">bad</a>',
    "/three": b"\xff\xfe<a href='/one'>1</a><p",
}


class Site(ThreadingHTTPServer):
    """A few pages, and when each was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, float]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.asked.append((self.path, time.monotonic()))
        pages = FOUND | {"/robots.txt": ROBOTS}
        self.send_response(301 if self.path == "/moved" else 200 if self.path in pages else 404)
        if self.path == "/moved":
            self.send_header("location", "/three")
        self.end_headers()
        self.wfile.write(pages.get(self.path, b""))

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("guide"), robots=True) as server:
        yield server
        assert server.stop() == 0


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as found:
        threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True).start()
        yield found
        found.shutdown()


def test_the_crawler_fetches_what_it_may_and_in_time(guide: Served, site: Site) -> None:
    command = [sys.executable, str(CRAWLER), guide.url, site.url + "/"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    found = dict.fromkeys(["/robots.txt", *FOUND], "200")
    expected = found | {"/moved": "301", "/missing": "404"}
    lines = [f"{status} {site.url}{path}" for path, status in expected.items()]
    assert sorted(ended.stdout.splitlines()) == sorted(lines)
    assert ended.stdout.startswith(lines[0])
    assert sorted(path for path, _ in site.asked) == sorted(expected)
    at, delay_s = [at for _, at in site.asked], Policy().default_delay_s
    assert (at[-1] - at[0]) / (len(at) - 1) > delay_s - 0.1
    assert min(later - earlier for earlier, later in pairwise(at)) > delay_s / 2  # after a late one
    with Client(guide.url) as client:
        counted = client.stats("example")["crawls"]["example"]
        assert (counted["state"], counted["fetches"], counted["done"], counted["queued"]) == ("exhausted", 7, 7, 0)


def test_the_crawler_says_that_a_host_does_not_answer(guide: Served) -> None:
    with Site() as closed:
        pass
    command = [sys.executable, str(CRAWLER), guide.url, closed.url + "/"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"connect {closed.url}/robots.txt\n"  # it will be tried again later: enough
        process.kill()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_crawler_that_is_told_to_stop_returns_what_it_holds(guide: Served, site: Site, how: signal.Signals) -> None:
    command = [sys.executable, str(CRAWLER), guide.url, site.url + "/"]
    with Client(guide.url) as client, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        until = time.monotonic() + 30
        while not client.stats("example")["crawls"]["example"]["leased"] and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(how)
        assert process.wait(30) == 0
        counted = client.stats("example")["crawls"]["example"]
    assert counted["leased"] == 0
    assert counted["queued"] > 0


def test_the_crawler_says_how_it_is_called() -> None:
    for words in ([], [AS_IN_THE_PAGE]):
        ended = subprocess.run([sys.executable, CRAWLER, *words], capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stderr) == (2, "usage: python examples/crawler.py GUIDE SEED…\n")


def blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_python_of_the_clients_page_runs(guide: Served) -> None:
    said = io.StringIO()
    for example in blocks(CLIENTS):
        with contextlib.redirect_stdout(said):
            exec(compile(example.replace(AS_IN_THE_PAGE, guide.url), "clients.md", "exec"), {})
    assert "'accepted': 1, 'discovered': 1" in said.getvalue()
    assert "\n['https://example.com/next']\n" in said.getvalue()
    assert "budget.max_urls | budget.max_urls: expected an integer from 1 to 10000, got -3" in said.getvalue()


def test_the_clients_page_names_every_method() -> None:
    public = {name for name in dir(Client) if not name.startswith("_")}
    assert set(re.findall(r"`([a-z_]+)\(", CLIENTS.partition("## Retries")[0])) == public


def test_the_clients_page_names_every_code_and_what_it_raises() -> None:
    for code, kind in KINDS.items():
        assert f"`{code}`" in CLIENTS
        assert f"`{kind.__name__}`" in CLIENTS


def test_the_clients_page_names_the_defaults() -> None:
    shown = dict(re.findall(r"^\| `([a-z_]+_s|retries)` \| (\d+) \|", CLIENTS, re.MULTILINE))
    assert {name: ast.literal_eval(value) for name, value in shown.items()} == {
        "timeout_s": TIMEOUT_S, "retries": RETRIES, "deadline_s": DEADLINE_S,
    }  # fmt: skip
