"""Common mistakes are told as what they are, and those of others fill no log."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.gateway.conftest import serving
from tests.gateway.test_tls import Authority

from crawlguide import Client, UrlFrontierClient
from crawlguide.core.errors import CrawlGuideError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.gateway.conftest import Served

LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT\S+ (info|warning|error) ")
OTHER_NAME = "cannot be trusted .its certificate is for another name"
WANTS_MORE = "does it speak TLS .grpcs://, or tls=True., or want a client certificate .CRAWLGUIDE_CERTIFICATE"


@contextmanager
def doors(folder: Path, *options: str) -> Iterator[tuple[Served, int, int]]:
    """A server, and its ports for gRPC and URLFrontier."""
    folder.mkdir()
    with serving(folder, options=["--grpc-port", "0", "--frontier-port", "0", *options]) as server:
        ready = json.loads((folder / "ready.json").read_text())
        yield server, ready["grpc_port"], ready["frontier_port"]


def files(folder: Path) -> tuple[list[str], str]:
    """Options for a server whose certificate is for localhost, and who has signed it."""
    authority = Authority("authority")
    certificate, key = authority.issue(folder, "server")
    return ["--tls-certificate", str(certificate), "--tls-key", str(key)], str(authority.write(folder))


def refused(said: str, call: Callable[[], object]) -> None:
    with pytest.raises(CrawlGuideError, match=said):
        call()


def test_whoever_fails_at_a_handshake_writes_nothing_into_the_log(tmp_path: Path) -> None:
    options, authority = files(tmp_path)
    with doors(tmp_path / "served", *options) as (server, *ports):
        for port in ports:
            for words in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" + b"x" * 99, b""):
                with socket.create_connection(("127.0.0.1", port), 10) as line:
                    line.sendall(words)
                    line.shutdown(socket.SHUT_WR)
                    while line.recv(4_096):
                        pass
        with Client(f"grpcs://localhost:{ports[0]}", ca=authority) as guide:
            assert "crawls" in guide.stats()
        lines = server.said().splitlines()
        assert lines
        assert [line for line in lines if not LOG_LINE.match(line)] == []


def test_clients_say_which_mistake_it_is(tmp_path: Path) -> None:
    options, authority = files(tmp_path)
    with doors(tmp_path / "served", *options) as (_, grpc_port, frontier_port):
        refused(WANTS_MORE, Client(f"grpc://localhost:{grpc_port}", retries=0).stats)
        refused(OTHER_NAME, Client(f"grpcs://127.0.0.1:{grpc_port}", retries=0, ca=authority).stats)
        refused(WANTS_MORE, UrlFrontierClient(f"localhost:{frontier_port}").stats)
        refused(OTHER_NAME, UrlFrontierClient(f"127.0.0.1:{frontier_port}", ca=authority).stats)


def test_a_client_without_the_certificate_that_is_wanted_is_told_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, authority = files(tmp_path)
    monkeypatch.setenv("CRAWLGUIDE_SERVER_TLS_CLIENT_CA", authority)
    monkeypatch.setenv("CRAWLGUIDE_ACCESS_DEFAULT_TENANT", "default")
    with doors(tmp_path / "served", *options) as (_, grpc_port, _):
        refused(WANTS_MORE, Client(f"grpcs://localhost:{grpc_port}", retries=0, ca=authority).stats)


def test_tls_where_there_is_none_is_one_line_that_says_so(tmp_path: Path) -> None:
    with doors(tmp_path / "served") as (_, grpc_port, frontier_port):
        url = f"grpcs://localhost:{grpc_port}"
        command = [sys.executable, "-m", "crawlguide", "next", "--crawler", "me", "--url", url]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stderr
        assert said == f"crawlguide: {url} does not speak TLS: is its address one of grpc://?\n"
        refused("TLS: leave `tls` and `ca` out", UrlFrontierClient(f"localhost:{frontier_port}", tls=True).stats)


def test_crawls_are_listed_in_order(served: Served, command: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """A map of gRPC has none."""
    names = [f"listed-{letter}" for letter in "hcbgdafe"]
    with Client(served.grpc_url) as guide:
        for name in names:
            guide.define(name, {})
    lines = command("status", "--url", served.grpc_url).stdout.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("listed-")] == sorted(names)
