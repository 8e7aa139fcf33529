"""The loops of docs/own-crawler.md in other languages, run as they stand over a small web and a real guide."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from crawlguide import Client
from tests.docs.blocks import of_page
from tests.docs.test_examples import FOUND, Site
from tests.gateway.conftest import Served, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NODE, GO = shutil.which("node"), shutil.which("go")
FETCHED = {*FOUND, "/moved", "/missing", "/private/diary"}  # this guide reads no robots.txt


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("guide")) as server:
        yield server
        assert server.stop() == 0


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as found:
        threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True).start()
        yield found
        found.shutdown()


def snippet(title: str, guide: Served, seed: str, crawl: str) -> str:
    (block,) = (block for block in of_page("docs/own-crawler.md", "js", "go") if block.title == title)
    text = block.text.replace("127.0.0.1:8080", f"127.0.0.1:{guide.port}").replace("https://example.com/", seed)
    with Client(guide.url) as client:  # the web of the test wants no pauses, and has one host
        client.define(crawl, {"policy": {"default_delay_s": 0, "seed_hosts_only": True, "traps": False}})
    return text.replace('"books"', f'"{crawl}"').replace("/books/", f"/{crawl}/")


def run(*command: str, cwd: Path) -> str:
    env = {**os.environ, "GOCACHE": str(cwd / "cache"), "GOFLAGS": "-mod=mod", "NODE_NO_WARNINGS": "1"}
    ended = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=110, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def counted(guide: Served, crawl: str) -> tuple[str, int, int]:
    with Client(guide.url) as client:
        numbers = client.stats(crawl)["crawls"][crawl]
    return numbers["state"], numbers["fetches"], numbers["leased"]


@pytest.mark.skipif(NODE is None, reason="Node is not installed")
def test_the_loop_for_node_crawls_a_web_to_its_end(guide: Served, site: Site, tmp_path: Path) -> None:
    (tmp_path / "crawler.mjs").write_text(snippet("crawler.mjs", guide, site.url + "/", "node"))
    printed = run(str(NODE), "crawler.mjs", cwd=tmp_path)
    assert {path for path, _ in site.asked} == FETCHED
    assert f"301 {site.url}/moved\n" in printed
    assert counted(guide, "node") == ("exhausted", len(FETCHED), 0)


@pytest.mark.skipif(NODE is None, reason="Node is not installed")
def test_the_socket_for_node_asks_and_tells(guide: Served, site: Site, tmp_path: Path) -> None:
    (tmp_path / "socket.mjs").write_text(snippet("socket.mjs", guide, site.url + "/", "socket"))
    assert run(str(NODE), "--experimental-websocket", "socket.mjs", cwd=tmp_path) == "1\n"
    assert counted(guide, "socket") == ("exhausted", 1, 0)


@pytest.mark.skipif(GO is None, reason="Go is not installed")
def test_the_loop_for_go_compiles_and_crawls_a_web_to_its_end(guide: Served, site: Site, tmp_path: Path) -> None:
    (tmp_path / "crawler.go").write_text(snippet("crawler.go", guide, site.url + "/", "go"))
    assert run(str(GO), "vet", "crawler.go", cwd=tmp_path) == ""
    printed = run(str(GO), "run", "crawler.go", cwd=tmp_path)
    assert {path for path, _ in site.asked} == FETCHED
    assert f"{site.url}/moved\n" in printed
    assert counted(guide, "go") == ("exhausted", len(FETCHED), 0)
