"""The same over HTTP: a server with `[[predict]]` tables, plugins that fail, and changes while it runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.gateway.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.gateway.conftest import Served

SETTINGS = """\
[crawls]
plugins = ["broken", "sleepy"]

[[predict]]
kind = "relational"
top = 50

[[predict]]
kind = "broken"
"""
PLUGIN = """\
import time
from dataclasses import dataclass

from crawlguide.core.definition import CLASSIC, Fixed
from crawlguide.strategies.shared.composition import Composition
from crawlguide.strategies.shared.composition import Top


class Options(Fixed, frozen=True):
    kind: str = "{name}"


@dataclass(frozen=True)
class Model:
    version: str = "{name}-1"

    def predict(self, batch):
        {body}


def build(options, seed, goal):
    return Composition(Top(), Model(), CLASSIC)
"""
POLICY = {"default_delay_s": 0, "max_per_host": 0}
ASK = {"mcp_version": "2025-11", "crawler_id": "c-1", "crawl_id": "books", "budget": {"max_urls": 1}}
URLS = [f"https://a.example/{number}" for number in range(9)]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    (tmp_path / "crawlguide.toml").write_text(SETTINGS)
    (tmp_path / "broken.py").write_text(PLUGIN.format(name="broken", body="raise OSError('no graphics card')"))
    (tmp_path / "sleepy.py").write_text(PLUGIN.format(name="sleepy", body="time.sleep(5); return batch.depth * 0.0"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with serving(tmp_path, data=tmp_path / "data") as found:
        yield found
        assert found.stop() == 0


class Door:
    """One crawl of the server, seen by one crawler."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def put(self, strategy: dict[str, Any] | None) -> httpx.Response:
        chosen = {} if strategy is None else {"strategy": strategy}
        return self.client.put("/v1/crawls/books", json={"policy": POLICY, **chosen})

    def about(self) -> dict[str, Any]:
        """What an answer says of itself."""
        answer = self.client.post("/v1/next", json=ASK)
        assert answer.status_code == 200, answer.text
        assert len(answer.json()["assigned_urls"]) == 1
        found: dict[str, Any] = answer.json()["metadata"]
        return found


@pytest.fixture
def door(server: Served) -> Iterator[Door]:
    with httpx.Client(base_url=server.url, trust_env=False, timeout=30.0) as client:
        found = Door(client)
        assert found.put(None).status_code == 201
        assert client.post("/v1/crawls/books/seeds", json={"urls": URLS}).status_code == 200
        yield found


def test_a_server_degrades_says_so_and_is_mended_by_a_put(server: Served, door: Door) -> None:
    first = door.about()
    assert (first["strategy"], first["degraded"]) == ("cascade", "predictor_fallback")
    assert first["degraded_why"] == "broken raised OSError"
    assert door.put({"kind": "broken"}).status_code == 200
    assert door.about()["degraded"] == "heuristic_fallback"
    assert door.put({"kind": "layered"}).status_code == 200
    well = door.about()
    assert (well["degraded"], "degraded_why" in well) == (None, False)
    scraped = door.client.get("/metrics").text
    assert 'crawlguide_degraded_total{part="predictor_fallback",tenant="default"} 1.0' in scraped
    assert 'crawlguide_degraded_total{part="heuristic_fallback",tenant="default"} 1.0' in scraped
    assert "crawl books: broken raised OSError, and is passed over until it works again" in server.said()
    assert "Traceback" not in server.said()


def test_a_server_does_not_wait_for_a_model_that_sleeps(door: Door) -> None:
    sleepy = {"kind": "fallback", "predict": [{"kind": "sleepy", "budget_ms": 50}, {"kind": "layered"}]}
    assert door.put(sleepy).status_code == 200
    began = time.monotonic()
    slow = door.about()
    assert time.monotonic() - began < 4.0  # the model sleeps five seconds
    assert slow["degraded"] == "predictor_fallback"
    assert slow["degraded_why"] == "sleepy took 50 ms where 50 are allowed"
    assert slow["last_model_version"].startswith("layered")


def test_what_cannot_be_built_is_refused_and_changes_nothing(door: Door) -> None:
    refused = door.put({"kind": "cascade", "predict": [{"kind": "relational", "top": 1.5}]})
    assert refused.status_code == 400
    assert refused.json()["error"]["field"] == "strategy.predict[0].top"
    assert door.about()["strategy"] == "cascade"
