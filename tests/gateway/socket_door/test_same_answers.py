"""A socket answers as the other doors do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.gateway.conftest import Served, serving
from tests.gateway.socket_door.common import (
    FREE,
    Message,
    ask,
    opened,
    post,
    prepare,
    tell,
)

from crawlguide import Guide
from crawlguide.core.errors import CrawlGuideError

STORY: list[tuple[str, Message]] = [
    ("next", ask("books", 3, context={"seed_urls": ["https://a.example/"]})),
    ("next", ask("books", 3, context={"seed_urls": ["https://b.example/x?y=1#z"]})),
    ("report", tell("books", "https://a.example/")),
    ("next", ask("books", 5, request_id="r-1")),
    ("next", ask("books", 5, request_id="r-1")),
    ("next", ask("books", 6, request_id="r-1")),
    ("next", ask("books", -3)),
    ("next", {"crawler_id": "c-1"}),
    ("next", ask("books", mcp_version="1999-01")),
    ("report", tell("books", "https://b.example/x?y=1", "not a url", report_id="t-1")),
    ("report", tell("books", "https://b.example/x?y=1", "not a url", report_id="t-1")),
    ("report", {**tell("books"), "fetches": [
        {"url": "https://c.example/", "status": 200, "title": "tea", "outlinks": [{"url": "/d"}, {"url": "https://e.example/"}]},
        {"url": "https://c.example/f", "error": "timeout"},
    ]}),
    ("next", ask("books", 10, context={"recent_history": [{"url": "https://c.example/d", "status": 404}]})),
    ("next", ask("books", 10)),
]  # fmt: skip
TIMES = {"lease_expires", "uptime_s"}


def timeless(value: Any) -> Any:
    """Without instants, and numbers that age a little from run to run to three digits."""
    if isinstance(value, dict):
        return {key: timeless(inner) for key, inner in value.items() if key not in TIMES}
    if isinstance(value, list):
        return [timeless(inner) for inner in value]
    return round(value, 3) if isinstance(value, float) else value


def through_the_library() -> list[Any]:
    told = []
    with Guide.open(":memory:", seed=0) as guide:
        guide.define("books", FREE)
        for kind, message in STORY:
            try:
                told.append(timeless(guide.ask(message) if kind == "next" else guide.tell(message)))
            except CrawlGuideError as problem:
                told.append((problem.code, problem.message, problem.field))
    return told


def refusal(answer: Message) -> tuple[str, str, str | None]:
    problem = answer["error"]
    return problem["code"], problem["message"], problem["field"]


def through_http(server: Served) -> list[Any]:
    prepare(server, "books", 0)
    answers = [post(server, f"/v1/{kind}", message).json() for kind, message in STORY]
    return [refusal(answer) if "error" in answer else timeless(answer) for answer in answers]


async def through_a_socket(server: Served, codec: str) -> list[Any]:
    prepare(server, "books", 0)
    told: list[Any] = []
    async with opened(server, codec) as line:
        for number, (kind, message) in enumerate(STORY):
            answer = await line.call(kind, number, **message)
            assert answer.pop("id") == number
            told.append(refusal(answer) if answer.pop("type") == "error" else timeless(answer))
    return told


async def test_library_http_and_socket_give_the_same_answers(tmp_path: Path, codec: str) -> None:
    for name in ("http", "socket"):
        (tmp_path / name).mkdir()
    with serving(tmp_path / "http") as one, serving(tmp_path / "socket") as other:
        over_http, over_a_socket = through_http(one), await through_a_socket(other, codec)
    assert over_a_socket == over_http
    assert over_a_socket == await asyncio.to_thread(through_the_library)
    assert sum(isinstance(answer, dict) for answer in over_a_socket) == 10
