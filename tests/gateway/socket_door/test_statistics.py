"""Statistics that are asked for, and those that are pushed."""

from __future__ import annotations

import httpx
from tests.gateway.conftest import Served
from tests.gateway.socket_door.common import FREE, opened, prepare
from tests.gateway.waiting import MOST_S, others_wait


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


async def test_statistics_that_many_want_have_their_turns_with_the_requests_of_others(
    served: Served, crawl: str, codec: str
) -> None:
    """Each look at all crawls takes a while: without turns the looks of one moment are one long step."""
    async with httpx.AsyncClient(base_url=served.url, trust_env=False, timeout=30.0) as door:
        for number in range(50):
            (await door.put(f"/v1/crawls/{crawl}-{number}", json=FREE)).raise_for_status()
        async with opened(served, codec) as line:
            with others_wait(served) as wait:
                for name in range(60):
                    await line.say("stats", name, every_s=0.1)
                heard = {(await line.hear())["id"] for _ in range(300)}
        assert wait.longest_s < MOST_S, wait
        assert len(heard) > 1
        for number in range(50):
            (await door.delete(f"/v1/crawls/{crawl}-{number}")).raise_for_status()
