"""TLS to NATS: a user and a password go nowhere in clear text where it was asked for."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.gateway.bus.common import NatsServer, fresh_prefix
from tests.gateway.test_tls import Authority

from crawlguide.core.config import BusOptions
from crawlguide.gateway.bus.messages import BusAway, Names
from crawlguide.gateway.bus.nats import NatsConnection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

WITHOUT_TLS = "the server does without TLS"


class Stranger:
    """Somebody on the way, who says what a server says first, and listens to what is said to it."""

    def __init__(self, **info: Any) -> None:
        self._info = {"server_id": "x", "version": "2.10.0", "max_payload": 1_048_576, "proto": 1, **info}
        self.heard = b""
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"INFO " + json.dumps(self._info).encode() + b"\r\n")
        self.heard = await reader.read(4_096)
        writer.write(b"-ERR 'no'\r\n")
        writer.close()


@asynccontextmanager
async def listening(**info: Any) -> AsyncIterator[Stranger]:
    stranger = Stranger(**info)
    async with await asyncio.start_server(stranger.serve, "127.0.0.1", 0) as server:
        stranger.port = server.sockets[0].getsockname()[1]
        yield stranger


def connection(url: str, **more: Any) -> NatsConnection:
    options = BusOptions(nats=url, nats_user="guide", nats_password="sesame", **more)
    return NatsConnection(options, Names(fresh_prefix()))


@pytest.mark.parametrize("scheme", ["tls", "nats"])
async def test_a_server_without_tls_is_shown_nothing_where_tls_was_asked_for(scheme: str, tmp_path: Path) -> None:
    authority = "" if scheme == "tls" else str(Authority("authority").write(tmp_path))
    async with listening() as stranger:
        with pytest.raises(BusAway, match=WITHOUT_TLS):
            await connection(f"{scheme}://127.0.0.1:{stranger.port}", tls_ca=authority).connect(print)
        assert stranger.heard == b""


async def test_one_that_says_it_has_tls_and_has_not_is_shown_nothing_but_the_beginning_of_a_handshake() -> None:
    async with listening(tls_available=True) as stranger:
        with pytest.raises(BusAway):
            await connection(f"tls://127.0.0.1:{stranger.port}").connect(print)
        assert stranger.heard.startswith(b"\x16\x03")
        assert b"sesame" not in stranger.heard


async def test_without_a_word_of_tls_the_connection_is_a_plain_one() -> None:
    async with listening() as stranger:
        with pytest.raises(BusAway):
            await connection(f"nats://127.0.0.1:{stranger.port}").connect(print)
        assert b"sesame" in stranger.heard


@pytest.mark.parametrize("more", ["", "allow_non_tls: true"])
async def test_a_server_with_tls_is_joined(more: str, tmp_path: Path) -> None:
    """Also one that would do without."""
    authority = Authority("authority")
    certificate, key = authority.issue(tmp_path, "nats")
    trusted = str(authority.write(tmp_path))
    settings = f'{more}\ntls {{ cert_file: "{certificate}", key_file: "{key}" }}'
    server = NatsServer(tmp_path / "served", more=settings + '\nauthorization { user: "guide", password: "sesame" }')
    try:
        joined = connection(server.url.replace("nats://127.0.0.1", "tls://localhost"), tls_ca=trusted)
        await joined.connect(print)
        transport: Any = joined._connected()._transport
        assert transport._io_writer.get_extra_info("ssl_object") is not None
        await joined.close()
        with pytest.raises(BusAway, match="certificate verify failed"):
            await connection(server.url.replace("nats://127.0.0.1", "tls://localhost")).connect(print)
    finally:
        server.stop()
