"""How a server begins and how it ends."""

from __future__ import annotations

import json
import re
import signal
import socket
import time
from typing import TYPE_CHECKING

import httpx
import pytest
from tests.gateway.http_door.common import (
    ask,
    done,
)

from crawlguide.core.errors import ConfigError
from crawlguide.gateway.listener import bound

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.gateway.conftest import Served


def test_a_request_in_flight_is_answered_before_the_end(own_server: Served) -> None:
    message = json.dumps(ask("default")).encode()
    headers = ("Host: localhost", f"Content-Length: {len(message)}", "Expect: 100-continue")
    with socket.create_connection(("127.0.0.1", own_server.port), timeout=10) as line:
        line.sendall("\r\n".join(("POST /v1/next HTTP/1.1", *headers, "", "")).encode())
        assert line.recv(65_536).startswith(b"HTTP/1.1 100 ")  # the server has begun to read
        own_server.process.send_signal(signal.SIGTERM)
        until = time.monotonic() + 5
        while "stopping" not in own_server.said() and time.monotonic() < until:
            time.sleep(0.02)
        line.sendall(message)
        assert line.recv(65_536).startswith(b"HTTP/1.1 200 ")
    assert own_server.process.wait(15) == 0


def test_a_server_told_to_stop_takes_no_new_connections(own_server: Served) -> None:
    assert own_server.stop() == 0
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", own_server.port), timeout=5):
        pass


def test_an_idle_connection_does_not_hold_up_the_end(own_server: Served) -> None:
    with httpx.Client(base_url=own_server.url, trust_env=False) as client:
        done(client.get("/healthz"))
        began = time.monotonic()
        assert own_server.stop() == 0
        assert time.monotonic() - began < 5


def test_ctrl_c_ends_the_server_cleanly(own_server: Served) -> None:
    assert own_server.stop(signal.SIGINT) == 0
    assert "Traceback" not in own_server.said()


@pytest.mark.parametrize("option", ["port", "grpc-port", "frontier-port"])
def test_a_taken_port_is_named(command: Callable[..., subprocess.CompletedProcess[str]], option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = command("serve", "--data", ":memory:", "--port", "0", f"--{option}", port)
    assert ended.returncode == 2
    words = f"crawlguide: server.{option.replace('-', '_')}: cannot listen on 127.0.0.1:{port}: Address already in use"
    hint = f"; another server may run there: name another with --{option}, 0 picks a free one\n"
    assert ended.stderr == words + hint


def test_an_address_of_another_machine_is_named() -> None:
    with pytest.raises(ConfigError, match=r"on 192\.0\.2\.1:.*; this machine has no such address: correct --host$"):
        bound("192.0.2.1", 0)  # which no machine has


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["serve", "--prot", "1"], "--prot"),
        (["serve", "--port", "many"], "--port"),
        (["serve", "--port", "70000"], "server.port"),
        (["serve", "--host", "0.0.0.0"], "server.host"),
        (["serve", "--config", "no-such.toml"], "no-such.toml"),
        (["no-such-command"], "no-such-command"),
    ],
)
def test_wrong_usage_is_named_and_ends_with_two(
    command: Callable[..., subprocess.CompletedProcess[str]], words: list[str], named: str
) -> None:
    ended = command(*words)
    assert ended.returncode == 2
    assert named in re.sub(r"\x1b\[[0-9;]*m", "", ended.stderr)
    assert "Traceback" not in ended.stderr
