"""Bodies that are large or deep, and what is no message at all."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

import httpx
import pytest
from tests.gateway.http_door.common import (
    MANY_KEYS,
    MOST_BYTES,
    ask,
    done,
    refused,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.gateway.conftest import Served


def body(crawl: str, member: str) -> bytes:
    """An ask with one more member, written by hand."""
    return json.dumps(ask(crawl))[:-1].encode() + b", " + member.encode() + b"}"


def test_a_body_of_just_four_mebibytes_is_read(client: httpx.Client, crawl: str) -> None:
    message = body(crawl, '"filler": ""')
    message = message[:-2] + b"x" * (MOST_BYTES - len(message)) + message[-2:]
    assert len(message) == MOST_BYTES
    done(client.post("/v1/next", content=message))


def test_a_body_over_four_mebibytes_is_too_large(client: httpx.Client) -> None:
    refused(client.post("/v1/next", content=b" " * (MOST_BYTES + 1)), 413, "too_large")


def test_a_chunked_body_over_four_mebibytes_is_too_large(client: httpx.Client) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(4):
            yield b" " * (MOST_BYTES // 4)
        yield b" "

    refused(client.post("/v1/next", content=pieces()), 413, "too_large")


def test_a_declared_length_that_is_too_large_is_refused_before_the_body_comes(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=5) as line:
        line.sendall(f"POST /v1/next HTTP/1.1\r\nHost: localhost\r\nContent-Length: {MOST_BYTES + 1}\r\n\r\n".encode())
        assert line.recv(65_536).startswith(b"HTTP/1.1 413 ")


def test_thirty_two_levels_are_read(client: httpx.Client, crawl: str) -> None:
    done(client.post("/v1/next", content=body(crawl, '"context": {"metadata": {"x": ' + "[" * 29 + "]" * 29 + "}}")))


@pytest.mark.parametrize(
    "member",
    [
        pytest.param('"context": {"metadata": {"x": ' + "[" * 30 + "]" * 30 + "}}", id="33 levels"),
        pytest.param('"future": ' + "[" * 100_000 + "]" * 100_000, id="100001 levels"),
        pytest.param(
            '"context": {"metadata": {"\\n": ' + "[" * 30 + "]" * 30 + "}}", id="33 levels after an escaped key"
        ),
        pytest.param('"future": {' + MANY_KEYS + ', "x": ' + "[" * 31 + "]" * 31 + "}", id="33 levels after many keys"),
        pytest.param('"future": {' + MANY_KEYS + ', "k0": 0}', id="a key twice among many"),
        pytest.param('"crawler_id": "c-2"', id="a key twice"),
        pytest.param('"context": {"metadata": {"a": 1, "a": 1}}', id="a key twice in metadata"),
        pytest.param('"context": {"metadata": {"a": 1, "\\u0061": 1}}', id="a key twice, once escaped"),
        pytest.param('"context": {"metadata": {"\\u0061": 1, "a": 1}}', id="a key twice, escaped first"),
        pytest.param('"context": {"metadata": {"\\n": 0, "x": {"b": 1, "b": 1}}}', id="a key twice after an escape"),
        pytest.param('"future": {"a": 1, "a": 2}', id="a key twice in an unknown field"),
        *(
            pytest.param(text.replace("VALUE", value), id=f"{value} in {where}")
            for value in ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", '"\\ud800"', '"\\udc00\\ud800"')
            for where, text in (
                ("metadata", '"context": {"metadata": {"x": VALUE}}'),
                ("an unknown field", '"future": VALUE'),
                ("an unknown field after a fault", '"request_id": 1, "future": VALUE'),
            )
            if not (value.endswith("1e999") and where == "an unknown field")  # legal JSON that nobody reads
        ),
        pytest.param('"request_id": "\\ud800"', id="half a surrogate pair in request_id"),
        pytest.param('"context": {"metadata": {"\\ud800": 1}}', id="half a surrogate pair in a key"),
        pytest.param('"future": 1,', id="a comma too many"),
        pytest.param('"future": 1} trailing {"x": 1', id="something after the end"),
        pytest.param('"request_id": 1} trailing {"x": 1', id="something after the end, and a fault"),
    ],
)
def test_what_json_or_the_protocol_forbids_is_refused(client: httpx.Client, crawl: str, member: str) -> None:
    refused(client.post("/v1/next", content=body(crawl, member)), 400, "malformed_request")


@pytest.mark.parametrize(
    "text",
    [b"", b"null", b"[]", b"3", b'"ask"', b"{", b"[1, 2", b"\xff", b"9~\xff", b'{"mcp_version": 1', b"\xef\xbb\xbf{}"],
)
@pytest.mark.parametrize("path", ["/v1/next", "/v1/report", "/v1/crawls/x/seeds"])
def test_a_body_that_is_no_message_is_refused(client: httpx.Client, path: str, text: bytes) -> None:
    refused(client.post(path, content=text), 400, "malformed_request")
