"""Many messages in flight on one socket, each with its id."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.gateway.conftest import Served
from tests.gateway.socket_door.common import (
    ask,
    opened,
    prepare,
    tell,
    tuned,
    urls_of,
)


@pytest.mark.parametrize("name", [1, -7, 2**63 - 1, "a", 'ü"\\\n\u2028', "x" * 200])
async def test_an_id_comes_back_as_it_went(served: Served, name: object, codec: str) -> None:
    async with opened(served, codec) as line:
        assert await line.call("ping", name) == {"type": "pong", "id": name}


@pytest.mark.parametrize(
    ("text", "name", "field"),
    [
        ("nonsense", None, None), ("", None, None), ("[]", None, None), ("null", None, None), ("1", None, None),
        ('{"type": "ping"}', None, "id"), ('{"id": 7}', 7, "type"), ('{"type": "dance", "id": 7}', 7, "type"),
        ('{"type": 1, "id": 7}', 7, "type"), ('{"type": "ping", "id": null}', None, "id"),
        ('{"type": "ping", "id": 1.5}', None, "id"), ('{"type": "ping", "id": true}', None, "id"),
        ('{"type": "ping", "id": ""}', None, "id"), ('{"type": "ping", "id": 7, "x": NaN}', None, None),
        ('{"type": "ping", "id": 7, "id": 7}', 7, None), ('{"type": "next", "id": 7, "a": 1, "a": 1}', 7, None),
        ('{"type": "next", "id": 7, "a": ' + "[" * 40 + "]" * 40 + "}", 7, None),
        ('{"type": "next", "id": 7}', 7, "mcp_version"),
        ('{"type": "stats", "id": 7, "every_s": 0.01}', 7, "every_s"),
        ('{"type": "subscribe", "id": 7, "crawler_id": "c"}', 7, "budget"),
        ('{"type": "subscribe", "id": 7, "crawler_id": "c", "budget": {"max_urls": 0}}', 7, "budget.max_urls"),
    ],
)  # fmt: skip
async def test_what_is_malformed_is_said_and_the_socket_goes_on(
    served: Served, text: str, name: object, field: str | None
) -> None:
    async with opened(served) as line:
        await line.socket.send(text)
        answer = await line.hear()
        assert (answer["type"], answer["id"]) == ("error", name)
        assert answer["error"].keys() == {"code", "message", "field", "retry_after_s"}
        assert (answer["error"]["code"], answer["error"]["field"]) == ("malformed_request", field)
        assert (await line.call("ping", 8))["type"] == "pong"


async def test_a_message_in_several_frames_is_one_message(served: Served) -> None:
    async with opened(served) as line:
        await line.socket.send(['{"type": "pi', "", 'ng", "id"', ": 5}"])
        assert await line.hear() == {"type": "pong", "id": 5}


async def test_a_thousand_at_once_are_all_answered(served: Served, crawl: str, codec: str) -> None:
    prepare(served, crawl, 300)
    async with opened(served, codec) as line:
        for number in range(1_000):
            await (line.say("next", number, **ask(crawl)) if number % 4 == 0 else line.say("ping", number))
        heard = [await line.hear() for _ in range(1_000)]
    assert sorted(answer["id"] for answer in heard) == list(range(1_000))
    given = [url for answer in heard if answer["type"] == "next" for url in urls_of(answer)]
    assert len(given) == len(set(given)) == 250


async def test_an_answer_that_needs_the_disk_is_overtaken_by_those_that_do_not(tmp_path: Path, codec: str) -> None:
    with tuned(tmp_path, data="data", socket_in_flight=8) as server:
        async with opened(server, codec) as line:
            for number in range(20):
                await line.say("report", f"r{number}", **tell("x", f"https://h{number}.example/"))
                await line.say("ping", f"p{number}")
            heard = [(await line.hear())["id"] for _ in range(40)]
    assert sorted(heard) == sorted([f"r{n}" for n in range(20)] + [f"p{n}" for n in range(20)])
    assert any(heard.index(f"p{number}") < heard.index(f"r{number}") for number in range(20))
