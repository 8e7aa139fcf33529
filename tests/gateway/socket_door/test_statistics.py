"""Statistics that are asked for, and those that are pushed."""

from __future__ import annotations

from tests.gateway.conftest import Served
from tests.gateway.socket_door.common import (
    opened,
    prepare,
)


async def test_statistics_come_now_and_then_until_unsubscribed(served: Served, crawl: str, codec: str) -> None:
    prepare(served, crawl, 3)
    async with opened(served, codec) as line:
        first = await line.call("stats", 4, every_s=0.1, crawl_id=crawl)
        assert (first["type"], first["id"]) == ("stats", 4)
        assert first["crawls"][crawl]["queued"] == 3
        await line.hear()
        last = await line.hear()
        assert last["uptime_s"] - first["uptime_s"] > 0.15
        await line.say("unsubscribe", 4)
        while (heard := await line.hear())["type"] == "stats":
            pass
        assert heard == {"type": "unsubscribe", "id": 4}
        assert await line.is_quiet()


async def test_statistics_of_a_crawl_that_is_not_there(served: Served, codec: str) -> None:
    async with opened(served, codec) as line:
        answer = await line.call("stats", 4, crawl_id="nobody-made-this")
        assert (answer["id"], answer["error"]["code"]) == (4, "not_found")
