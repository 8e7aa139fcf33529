"""How sockets end when the server does."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.gateway.socket_door.common import (
    get,
    opened,
    prepare,
    states,
    tell,
    tuned,
    urls_of,
    wish,
)


async def test_a_server_that_ends_answers_what_it_has_begun_and_says_goodbye(tmp_path: Path, codec: str) -> None:
    with tuned(tmp_path, data="data") as server:
        async with opened(server, codec) as line, opened(server, codec) as idle:
            for number in range(60):
                await line.say("report", number, **tell("x", f"https://h{number}.example/"))
            first = await line.hear()
            server.process.send_signal(signal.SIGTERM)
            heard, code = await line.until_closed()
            assert code == 1001
            said = await idle.hear()
            assert (said["type"], said["id"], said["error"]["code"]) == ("error", None, "unavailable")
            assert await idle.closed_with() == 1001
        assert server.process.wait(20) == 0
    answered = [answer for answer in (first, *heard) if answer["type"] == "report"]
    assert [answer["error"]["code"] for answer in heard if answer["type"] == "error"] == ["unavailable"]
    with tuned(tmp_path, data="data") as server:
        stats = get(server, "/v1/stats").json()
    assert stats["crawls"]["x"]["fetches"] == len(answered)


async def test_the_end_returns_what_was_pushed(tmp_path: Path, codec: str) -> None:
    with tuned(tmp_path, data="data") as server:
        prepare(server, "x", 3)
        async with opened(server, codec) as line:
            assert len(urls_of(await line.call("subscribe", 1, **wish("x", 3)))) == 3
            server.process.send_signal(signal.SIGTERM)
            assert await line.closed_with() == 1001
        assert server.process.wait(20) == 0
    with tuned(tmp_path, data="data") as server:
        assert states(server, "x") == (3, 0)
