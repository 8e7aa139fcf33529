"""A server answers to its own names alone: whoever rebinds a name of theirs to this machine gets nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest
from tests.gateway.conftest import serving

from crawlguide.gateway.browsers import BrowserCheck, objection

if TYPE_CHECKING:
    from pathlib import Path


SOCKET = {
    "connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
}  # fmt: skip


async def nothing(*_: object) -> None:
    raise AssertionError("it was passed on")


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8080",
        "localhost",
        "LOCALHOST.:80",
        "[::1]:8080",
        "127.8.8.8",
        "10.0.0.1",
        "[::2]:80",
        "",
        "guide.lan",
    ],
)
def test_names_of_this_machine_and_those_allowed_are_permitted(host: str) -> None:
    assert BrowserCheck(nothing, ["Guide.lan"]).permits(host)


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8080", "10.0.0.1.nip.example", "localhost.evil"]
)
def test_other_names_are_not_unless_all_are(host: str) -> None:
    assert not BrowserCheck(nothing, ["guide.lan"]).permits(host)
    assert BrowserCheck(nothing, ["*"]).permits(host)


def test_a_page_of_somebody_else_gets_nothing_out_of_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAWLGUIDE_SERVER_ALLOWED_HOSTS", "guide.lan")
    with serving(tmp_path) as served, httpx.Client(base_url=served.url, trust_env=False) as client:
        refused = client.get("/v1/stats", headers={"host": f"evil.example:{served.port}"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
        assert "server.allowed_hosts" in refused.json()["error"]["message"]
        assert client.get("/v1/stats", headers={"host": "guide.lan"}).status_code == 200
        assert client.get("/healthz", headers={"host": "evil.example"}).status_code == 200
        assert client.get("/v1/stats").status_code == 200
        assert client.get("/ws", headers={**SOCKET, "host": "evil.example"}).status_code == 403


HOST = "guide.lan:8080"
FORMS = [
    "application/x-www-form-urlencoded",
    "text/plain",
    "multipart/form-data; boundary=x",
    "Text/Plain;a=,application/json",
]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "application/json"},
        {"content-type": "application/x-www-form-urlencoded", "user-agent": "curl/8.1"},
        {"origin": "http://guide.lan:8080", "content-type": "application/x-www-form-urlencoded"},
        {"origin": "https://GUIDE.lan:8080", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none", "user-agent": "Mozilla/5.0"},
        {"origin": "https://guide.lan", "host": "guide.lan:443"},
        {"origin": "http://guide.lan:80", "host": "guide.lan"},
    ],
)
def test_crawlers_and_pages_of_our_own_may_change_something(headers: dict[str, str]) -> None:
    assert objection({"host": HOST} | headers) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://guide.lan"},
        {"origin": "http://guide.lan:8081"},
        {"origin": "https://guide.lan:80", "host": "guide.lan"},
        {"origin": "http://guide.lan:8080.evil.example"},
        {"origin": "http://["},
        {"origin": "http://guide.lan:8080", "sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "Cross-Site", "content-type": "application/json"},
        *({"content-type": kind, "user-agent": "Mozilla/5.0 (old)"} for kind in FORMS),
        *({"content-type": kind, "referer": "http://evil.example/"} for kind in FORMS),
        *({"content-type": kind} for kind in FORMS[1:]),
    ],
)
def test_pages_of_other_sites_may_not(headers: dict[str, str]) -> None:
    assert objection({"host": HOST} | headers) is not None


def test_a_header_that_is_said_twice_is_one_with_both(client: httpx.Client) -> None:
    """So none of two can hide behind the other."""
    own = ("origin", f"http://{client.base_url.netloc.decode()}")
    foreign = ("origin", "http://evil.example")
    for said, expected in (([own], 201), ([own, foreign], 403), ([foreign, own], 403)):
        assert client.put("/v1/crawls/books", headers=said, content=b"{}").status_code == expected


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_a_page_of_another_site_cannot_change_anything_by_any_method(client: httpx.Client, method: str) -> None:
    answer = client.request(method, "/v1/crawls/books", headers={"origin": "http://evil.example"}, content=b"{}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")


def test_nor_open_a_socket(client: httpx.Client) -> None:
    assert client.get("/ws", headers=SOCKET | {"origin": "http://evil.example"}).status_code == 403
    assert client.get("/ws", headers=SOCKET | {"sec-fetch-site": "cross-site"}).status_code == 403
