"""A server answers to its own names alone: whoever rebinds a name of theirs to this machine gets nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest
from tests.gateway.conftest import serving
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from crawlguide.gateway.host_header import HostHeaderCheck

if TYPE_CHECKING:
    from pathlib import Path


async def nothing(*_: object) -> None:
    raise AssertionError("it was passed on")


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8080", "localhost", "LOCALHOST.:80", "[::1]:8080", "127.8.8.8", "", "guide.lan"]
)
def test_names_of_this_machine_and_those_allowed_are_permitted(host: str) -> None:
    assert HostHeaderCheck(nothing, ["Guide.lan"]).permits(host)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8080", "10.0.0.1", "[::2]", "localhost.evil"])
def test_other_names_are_not_unless_all_are(host: str) -> None:
    assert not HostHeaderCheck(nothing, ["guide.lan"]).permits(host)
    assert HostHeaderCheck(nothing, ["*"]).permits(host)


def test_a_page_of_somebody_else_gets_nothing_out_of_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAWLGUIDE_SERVER_ALLOWED_HOSTS", "guide.lan")
    with serving(tmp_path) as served, httpx.Client(base_url=served.url, trust_env=False) as client:
        refused = client.get("/v1/stats", headers={"host": f"evil.example:{served.port}"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
        assert "server.allowed_hosts" in refused.json()["error"]["message"]
        assert client.get("/v1/stats", headers={"host": "guide.lan"}).status_code == 200
        assert client.get("/healthz", headers={"host": "evil.example"}).status_code == 200
        assert client.get("/v1/stats").status_code == 200
        with pytest.raises(InvalidStatus, match="403"):
            connect(f"ws://127.0.0.1:{served.port}/ws", additional_headers={"Host": "evil.example"})
