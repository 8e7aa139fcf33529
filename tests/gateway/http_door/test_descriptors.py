"""A server that may open few files: connections take no more than their share, and reports are still written."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import httpx
from tests.gateway.conftest import serving
from tests.gateway.http_door.common import done, tell

FILES = 600


def test_a_flood_of_connections_takes_no_descriptors_from_the_store(tmp_path: Path) -> None:
    with serving(tmp_path, tmp_path / "data", files=FILES) as server:
        with httpx.Client(base_url=server.url, trust_env=False, timeout=30) as client:
            done(client.post("/v1/report", json=tell("books")))
            answers = asyncio.run(flood(server.port, 1_000))
            assert answers > 0  # of those over the limit most were told so
            done(client.post("/v1/report", json=tell("books", {"url": "https://a.example/", "status": 200})))
            assert len(list(Path(f"/proc/{server.process.pid}/fd").iterdir())) < FILES
        done(httpx.post(server.url + "/v1/report", json=tell("books"), trust_env=False))
        assert server.stop() == 0
        assert "Too many open files" not in server.said()
        assert "refusing for now: more than" in server.said()


async def flood(port: int, many: int) -> int:
    """Open so many lines, and leave them open for a while. How many were refused in words?"""
    lines = [await asyncio.open_connection("127.0.0.1", port) for _ in range(many)]
    await asyncio.sleep(0.5)
    heard = [reader._buffer[:12] for reader, _ in lines]  # type: ignore[attr-defined]
    for _, writer in lines:
        writer.transport.abort()
    return sum(text == b"HTTP/1.1 503" for text in heard)


def test_this_process_may_open_more_than_the_server() -> None:
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > FILES + 1_000
