"""Which pages may open a socket, and which requests are none."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from pathlib import Path

import pytest
from tests.gateway.conftest import Served
from tests.gateway.socket_door.common import (
    SOON_S,
    opened,
    tuned,
)
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:1", "null", "https://[", ""])
async def test_pages_of_other_sites_are_refused(served: Served, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with opened(served, additional_headers={"Origin": origin}):
            pass
    assert refused.value.response.status_code == 403
    assert json.loads(refused.value.response.body or b"")["error"]["code"] == "forbidden"


async def test_our_own_page_may_open_a_socket(served: Served) -> None:
    async with opened(served, origin=f"http://127.0.0.1:{served.port}") as line:
        assert (await line.call("ping", 1))["type"] == "pong"


async def test_sockets_are_opened_at_one_path(served: Served) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with connect(f"ws://127.0.0.1:{served.port}/v1/next", proxy=None):
            pass
    assert refused.value.response.status_code == 404


async def test_the_socket_after_the_last_is_refused_before_the_handshake(tmp_path: Path) -> None:
    with tuned(tmp_path, max_sockets=2) as server:
        async with opened(server) as line:
            async with opened(server):
                with pytest.raises(InvalidStatus) as refused:
                    async with opened(server):
                        pass
                assert refused.value.response.status_code == 503
                assert json.loads(refused.value.response.body or b"")["error"]["code"] == "unavailable"
                assert (await line.call("ping", 1))["type"] == "pong"
            async with asyncio.timeout(SOON_S), opened(server) as again:
                assert (await again.call("ping", 1))["type"] == "pong"


HANDSHAKE = (
    "{method} /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{version}{key}\r\n"
)  # fmt: skip
KEY, THIRTEEN = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "Sec-WebSocket-Version: 13\r\n"


@pytest.mark.parametrize(
    "request_text",
    [
        HANDSHAKE.format(method="GET", version=THIRTEEN, key=""),
        HANDSHAKE.format(method="GET", version="", key=KEY),
        HANDSHAKE.format(method="GET", version="Sec-WebSocket-Version: 8\r\n", key=KEY),
        HANDSHAKE.format(method="GET", version=THIRTEEN, key="Sec-WebSocket-Key: short\r\n"),
        HANDSHAKE.format(method="GET", version=THIRTEEN, key=KEY + KEY),
        HANDSHAKE.format(method="POST", version=THIRTEEN, key=KEY),
    ],
)
def test_a_bad_handshake_is_refused_and_disturbs_nobody(served: Served, request_text: str) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=SOON_S) as bare:
        bare.sendall(request_text.encode())
        answer = bare.recv(65_536)
    assert not answer or re.match(rb"HTTP/1.1 4\d\d ", answer), answer
