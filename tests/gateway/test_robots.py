"""A server that obeys: it fetches robots.txt itself, from a site on this machine, and from nowhere it must not go."""

from __future__ import annotations

import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.gateway.conftest import Served, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION = "2025-11"
WITHIN_S = 20.0


class Site(ThreadingHTTPServer):
    """Answers every path with the same status and body, and remembers who asked for what."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.body = status, body
        self.asked: list[tuple[str, str]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers["user-agent"]))
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[Site]:
    found = Site(200, b"User-agent: polite\nDisallow: /private\n")
    yield found
    found.shutdown()
    found.server_close()


@pytest.fixture
def open_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server may connect to this machine, at any port."""
    monkeypatch.setenv("CRAWLGUIDE_OUTGOING_ALLOW_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("CRAWLGUIDE_OUTGOING_PORTS", "")


def post(server: Served, path: str, message: dict[str, Any]) -> dict[str, Any]:
    answer = httpx.post(server.url + path, json=message, timeout=30.0, trust_env=False)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ask(server: Served) -> dict[str, Any]:
    return post(server, "/v1/next", {"mcp_version": VERSION, "crawler_id": "c-1", "budget": {"max_urls": 10}})


def seed(server: Served, *urls: str) -> None:
    policy = {"user_agent": "polite", "default_delay_s": 0}
    answer = httpx.put(f"{server.url}/v1/crawls/default", json={"policy": policy}, trust_env=False)
    assert answer.status_code in (200, 201), answer.text
    post(server, "/v1/crawls/default/seeds", {"urls": list(urls)})


def given(server: Served) -> list[str]:
    """What is given out first, as soon as anything is."""
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        answer = ask(server)
        if answer["assigned_urls"]:
            return [one["url"] for one in answer["assigned_urls"]]
        time.sleep(min(answer["retry_after_ms"] / 1_000, 0.05))
    raise AssertionError("nothing was given out")


@pytest.mark.usefixtures("open_here")
def test_a_server_reads_robots_txt_and_keeps_to_it(tmp_path: Path, site: Site) -> None:
    with serving(tmp_path, tmp_path / "data", robots=True) as server:
        seed(server, f"{site.url}/a", f"{site.url}/private/b")
        first = ask(server)
        assert first["assigned_urls"] == []
        assert {held["reason"] for held in first["deferred"]} == {"robots"}
        assert given(server) == [f"{site.url}/a"]
        assert site.asked == [("/robots.txt", "polite")]
        dropped = httpx.get(f"{server.url}/v1/urls?crawl_id=default&state=dropped", trust_env=False).json()["urls"]
        assert [(url["url"], url["reason"]) for url in dropped] == [(f"{site.url}/private/b", "robots")]
        assert server.stop() == 0
    (again := tmp_path / "again").mkdir()
    with serving(again, tmp_path / "data", robots=True) as server:
        post(server, "/v1/crawls/default/seeds", {"urls": [f"{site.url}/c"]})
        assert given(server) == [f"{site.url}/c"]
        assert server.stop() == 0
    assert len(site.asked) == 1  # it was kept


def test_a_server_does_not_go_where_it_must_not(tmp_path: Path, site: Site) -> None:
    with serving(tmp_path, robots=True) as server:
        seed(server, f"{site.url}/a", "http://169.254.169.254/latest/meta-data", "http://[::1]/")
        until = time.monotonic() + WITHIN_S
        while server.said().count("could not be read") < 3 and time.monotonic() < until:
            assert ask(server)["assigned_urls"] == []
            time.sleep(0.05)
        said = server.said()
        assert f"robots.txt of {site.url} could not be read: port {site.server_port} is none of outgoing.ports" in said
        assert "169.254.169.254, which is no public address" in said
        assert "::1, which is no public address" in said
        assert server.stop() == 0
    assert site.asked == []


@pytest.mark.usefixtures("open_here")
def test_hosts_that_accept_and_say_nothing_do_not_keep_another_crawl_waiting(tmp_path: Path, site: Site) -> None:
    with serving(tmp_path, robots=True) as server, socket.create_server(("0.0.0.0", 0), backlog=1_024) as silent:
        port = silent.getsockname()[1]
        hosts = [f"http://127.0.{number // 200}.{number % 200 + 1}:{port}/" for number in range(400)]
        post(server, "/v1/crawls/slow/seeds", {"urls": hosts})
        message = {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": "slow", "budget": {"max_urls": 200}}
        for _ in range(5):
            post(server, "/v1/next", message)
        seed(server, f"{site.url}/a")
        began = time.monotonic()
        assert given(server) == [f"{site.url}/a"]
        assert time.monotonic() - began < 10.0  # the silent ones are given up after 15 s
        assert server.stop() == 0
