"""Assignments that are pushed as politeness allows."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import httpx
from tests.gateway.conftest import Served
from tests.gateway.socket_door.common import (
    ask,
    comes_to,
    get,
    opened,
    post,
    prepare,
    states,
    tell,
    urls_of,
    wish,
)


async def test_a_subscription_fills_its_places_and_a_report_frees_them(served: Served, crawl: str, codec: str) -> None:
    prepare(served, crawl, 5)
    async with opened(served, codec) as line:
        given = urls_of(await line.call("subscribe", "s", **wish(crawl, 2)))
        assert len(given) == 2
        assert await line.is_quiet()
        assert (await line.call("report", 1, **tell(crawl, given[0])))["type"] == "report"
        given += urls_of(await line.hear())
        assert len(given) == 3
        await asyncio.to_thread(post, served, "/v1/report", tell(crawl, given[1]))
        given += urls_of(await line.hear())
        assert await line.is_quiet()
        elsewhere = given[2].upper().replace("HTTPS", "https") + "#top"  # the same page, otherwise spelled
        assert (await line.call("report", 2, **tell(crawl, elsewhere)))["results"][0]["status"] == "ok"
        given += urls_of(await line.hear())
    assert len(set(given)) == 5


async def test_a_release_frees_places_through_whatever_door(served: Served, crawl: str, codec: str) -> None:
    prepare(served, crawl, 4)
    async with opened(served, codec) as line:
        first = urls_of(await line.call("subscribe", "s", **wish(crawl, 4)))
        assert len(first) == 4
        path, message = f"/v1/crawls/{crawl}/release", {"crawler_id": "c-1"}
        assert (await asyncio.to_thread(post, served, path, message)).json() == {"released": 4}
        assert sorted(urls_of(await line.hear())) == sorted(first)
        await line.say("release", 7, crawler_id="c-1", crawl_id=crawl)
        answers = [await line.hear(), await line.hear()]
        assert {"type": "release", "id": 7, "released": 4} in answers
        (assignment,) = [answer for answer in answers if answer["type"] == "assignment"]
        assert sorted(urls_of(assignment)) == sorted(first)


async def test_a_release_for_a_crawl_that_is_not_there_is_not_found(served: Served, crawl: str, codec: str) -> None:
    async with opened(served, codec) as line:
        answer = await line.call("release", 7, crawler_id="c-1", crawl_id=crawl)
        assert (answer["type"], answer["error"]["code"]) == ("error", "not_found")
        answer = await line.call("release", 8, crawl_id=crawl)
        assert (answer["error"]["code"], answer["error"]["field"]) == ("malformed_request", "crawler_id")


async def test_history_in_an_ask_frees_places_too(served: Served, crawl: str, codec: str) -> None:
    prepare(served, crawl, 5)
    async with opened(served, codec) as line:
        (first,) = urls_of(await line.call("subscribe", "s", **wish(crawl, 1)))
        history = {"recent_history": [{"url": first, "status": 200}]}
        assert len(urls_of(await line.call("next", 1, **ask(crawl, context=history)))) == 1
        (second,) = urls_of(await line.hear())
        history = {"recent_history": [{"url": second, "status": 200}]}
        await asyncio.to_thread(post, served, "/v1/next", ask(crawl, context=history))
        assert len(urls_of(await line.hear())) == 1


async def test_the_end_is_said_once_and_so_is_a_new_beginning(served: Served, crawl: str, codec: str) -> None:
    prepare(served, crawl, 1)
    async with opened(served, codec) as line:
        (only,) = urls_of(await line.call("subscribe", 3, **wish(crawl, 9)))
        assert await line.is_quiet()
        await line.call("report", 4, **tell(crawl, only))
        assert await line.hear() == {"type": "state", "id": 3, "crawl_state": "exhausted"}
        await asyncio.sleep(1.2)  # it asks again meanwhile
        assert await line.is_quiet()
        seeds = {"urls": ["https://more.example/"]}
        await asyncio.to_thread(post, served, f"/v1/crawls/{crawl}/seeds", seeds)
        assert await line.hear() == {"type": "state", "id": 3, "crawl_state": "running"}
        assert urls_of(await line.hear()) == ["https://more.example/"]


async def test_politeness_paces_what_is_pushed(served: Served, crawl: str, codec: str) -> None:
    polite = {"policy": {"robots": "ignore", "default_delay_s": 0.5, "horizon_s": 0.1}}
    prepare(served, crawl, 3, polite, "https://slow.example/{}")
    loop = asyncio.get_running_loop()
    starts: list[float] = []
    async with opened(served, codec) as line:
        await line.say("subscribe", 1, **wish(crawl, 9))
        while len(starts) < 3:
            given = (await line.hear())["assigned_urls"]
            starts += [loop.time() + one["not_before_ms"] / 1_000 for one in given]
    assert all(later - earlier > 0.4 for earlier, later in pairwise(starts)), starts


async def test_a_lease_that_ends_frees_its_place(served: Served, crawl: str, codec: str) -> None:
    prepare(served, crawl, 1)
    async with opened(served, codec) as line:
        first = urls_of(await line.call("subscribe", 1, **wish(crawl, 1, timeout_ms=400)))
        assert urls_of(await line.hear()) == first


async def test_after_unsubscribing_nothing_comes_but_what_was_given_stays_given(
    served: Served, crawl: str, codec: str
) -> None:
    prepare(served, crawl, 4)
    async with opened(served, codec) as line:
        first = urls_of(await line.call("subscribe", 1, **wish(crawl, 2)))
        assert await line.call("unsubscribe", 1) == {"type": "unsubscribe", "id": 1}
        await line.call("report", 2, **tell(crawl, first[0]))
        assert await line.is_quiet()
        assert states(served, crawl) == (2, 1)
        answer = await line.call("unsubscribe", 1)
        assert (answer["type"], answer["error"]["code"]) == ("error", "not_found")
    await comes_to(served, crawl, (3, 0))


async def test_an_id_carries_one_subscription(served: Served, crawl: str, codec: str) -> None:
    prepare(served, crawl, 2)
    async with opened(served, codec) as line:
        await line.call("subscribe", 1, **wish(crawl, 1))
        answer = await line.call("stats", 1)
        assert (answer["type"], answer["id"], answer["error"]["code"]) == ("error", 1, "conflict")
        assert len(urls_of(await line.call("subscribe", "1", **wish(crawl, 1)))) == 1


async def test_a_subscription_that_cannot_be_served_ends_with_an_error(served: Served, crawl: str, codec: str) -> None:
    async with opened(served, codec) as line:
        answer = await line.call("subscribe", 1, **wish(crawl, 1), mcp_version="1999-01")
        assert (answer["id"], answer["error"]["code"]) == (1, "unsupported_version")
        answer = await line.call("unsubscribe", 1)
        assert answer["error"]["code"] == "not_found"


async def test_a_lost_socket_returns_what_it_was_given_and_no_more(served: Served, crawl: str, codec: str) -> None:
    prepare(served, crawl, 12)
    post(served, "/v1/next", ask(crawl, 2))  # the same crawler, by another door
    async with opened(served, codec) as line, opened(served, codec) as other:
        assert len(urls_of(await line.call("subscribe", 1, **wish(crawl, 5)))) == 5
        assert len(urls_of(await other.call("subscribe", 1, **wish(crawl, 3)))) == 3
        assert states(served, crawl) == (2, 10)
        line.socket.transport.abort()
        await comes_to(served, crawl, (7, 5))
        assert (await other.call("ping", 2))["type"] == "pong"
    await comes_to(served, crawl, (10, 2))


async def test_a_deleted_crawl_does_not_come_back_with_an_open_or_a_closing_socket(
    own_server: Served, codec: str
) -> None:
    prepare(own_server, "gone", 3)
    async with opened(own_server, codec) as line:
        assert len(urls_of(await line.call("subscribe", 1, **wish("gone", 3)))) == 3
        await asyncio.to_thread(httpx.delete, f"{own_server.url}/v1/crawls/gone", trust_env=False)
        said = await line.hear()
        assert (said["type"], said["error"]["code"]) == ("error", "not_found")
    await asyncio.sleep(0.2)
    assert "gone" not in get(own_server, "/v1/stats").json()["crawls"]


async def test_what_a_quiet_subscription_was_given_later_returns_when_the_socket_goes(
    served: Served, crawl: str, codec: str
) -> None:
    prepare(served, crawl, 0)
    async with opened(served, codec) as line:
        await line.say("subscribe", 1, **wish(crawl, 3))  # it is given nothing yet
        await line.say("subscribe", 2, **wish(f"{crawl}-other", 3))
        await line.call("ping", 3)
        seeds = {"urls": [f"https://later{number}.example/" for number in range(3)]}
        await asyncio.to_thread(post, served, f"/v1/crawls/{crawl}/seeds", seeds)
        given = list[str]()
        while len(given) < 3:
            heard = await line.hear()
            given += urls_of(heard) if heard["type"] == "assignment" else []
    await comes_to(served, crawl, (3, 0))
