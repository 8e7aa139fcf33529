"""Thousands of connections that send a head byte by byte keep nobody else waiting."""

from __future__ import annotations

import resource
import socket
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tests.gateway.waiting import ALIVE, HEALTHZ

if TYPE_CHECKING:
    from tests.gateway.conftest import Served

SLOW, ASKED = 5_000, 200
ROOM_S = 0.1  # for a machine that is busy itself


def slowest(port: int) -> float:
    """The time within which 99 of 100 requests are answered."""
    took = []
    with socket.create_connection(("127.0.0.1", port)) as line:
        for _ in range(ASKED):
            began, answer = time.perf_counter(), b""
            line.sendall(HEALTHZ)
            while not answer.endswith(ALIVE):
                answer += line.recv(4_096)
            took.append(time.perf_counter() - began)
    return sorted(took)[ASKED * 99 // 100 - 1]


def test_five_thousand_slow_heads_double_no_answer_time(own_server: Served) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    alone = slowest(own_server.port)
    try:
        with ExitStack() as open_lines:
            lines = [
                open_lines.enter_context(socket.create_connection(("127.0.0.1", own_server.port))) for _ in range(SLOW)
            ]
            for line in lines:
                line.sendall(b"GET /v1/stats HTTP/1.1\r\nx-slow: a")
            beside = slowest(own_server.port)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert beside < 2 * alone + ROOM_S
