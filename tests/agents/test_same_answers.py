"""Whatever is asked and told through the tools is answered as by the library, in the histories of all doors."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client

from crawlguide import AsyncGuide
from crawlguide.agents.calls import GuardedGuide
from crawlguide.agents.finding import Searches, SearchOptions
from crawlguide.agents.server import Desk
from crawlguide.gateway import wire
from crawlguide.gateway.opening import MEMORY, open_guide
from crawlguide.gateway.service import Service
from crawlguide.testing import ManualClock
from tests.gateway.test_congruence import CONFIG, CRAWL, SEED, Library, Step, definitions, steps

if TYPE_CHECKING:
    from mcp.types import CallToolResult

    from crawlguide.guide.local import LocalGuide


class Tools:
    """Asks and tells with the official client; what has no tool goes to the guide itself."""

    def __init__(self, guide: LocalGuide, client: Client) -> None:
        self.guide, self._client = guide, client
        self._library = Library(guide)
        self.release, self.rules = self._library.release, self._library.rules

    async def ask(self, message: dict[str, Any]) -> bytes:
        named = {name: message[name] for name in ("crawl_id", "crawler_id", "request_id") if name in message}
        return await self._call("next_urls", named | message["budget"] | message.get("context", {}))

    async def tell(self, message: dict[str, Any]) -> bytes:
        return await self._call(
            "report_fetches", {name: value for name, value in message.items() if name != "mcp_version"}
        )

    async def _call(self, tool: str, arguments: dict[str, Any]) -> bytes:
        result: CallToolResult = await self._client.call_tool(tool, arguments)
        return json.dumps(result.structured_content).encode()


def same(heard: bytes, expected: bytes) -> bool:
    """Of an error the code: fields of tools are not nested, and their bounds are narrower."""
    one, other = json.loads(heard), json.loads(expected)
    if "error" in one and "error" in other:
        return bool(one["error"]["code"] == other["error"]["code"])
    return bool(one == other)


async def lived_through(definition: dict[str, Any], history: list[Step]) -> list[bytes]:
    clock = ManualClock()
    guides = [open_guide(MEMORY, CONFIG, clock, SEED) for _ in range(2)]
    service, heard = Service(guides[1], CONFIG), list[bytes]()
    desk = Desk(GuardedGuide(service), Searches(SearchOptions()))
    async with Client(desk.server()) as client:
        library, tools = Library(guides[0]), Tools(guides[1], client)
        for one in guides:
            await AsyncGuide(one).define(CRAWL, definition)
        for kind, word in history:
            if kind == "wait":
                clock.advance(word)
                continue
            expected = await getattr(library, kind)(word)
            answer = await getattr(tools, kind)(word)
            assert same(answer, expected), (kind, word, answer, expected)
            heard.append(answer)
        numbers = [wire.encode((await one.stats()).crawls) for one in guides]
        assert numbers[0] == numbers[1]
    for one in guides:
        await one.close()
    return heard


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(definition=definitions, history=st.lists(steps, min_size=1, max_size=20))
def test_any_history_reads_the_same_through_the_tools(definition: dict[str, Any], history: list[Step]) -> None:
    asyncio.run(lived_through(definition, history))


def test_a_history_in_which_something_happens() -> None:
    me = {"mcp_version": "2025-11", "crawl_id": CRAWL, "crawler_id": "c-1"}
    seeds = [f"https://h{number}.example0.org/1" for number in range(4)]
    found = {"url": seeds[0], "status": 200, "relevance": 0.9, "outlinks": [{"url": "/2"}]}
    history: list[Step] = [
        ("ask", {**me, "budget": {"max_urls": 3}, "context": {"seed_urls": seeds}}),
        ("tell", {**me, "fetches": [found]}),
        ("release", "c-1"),
        ("wait", 40.0),
        ("ask", {**me, "budget": {"max_urls": 9}}),
        ("ask", {**me, "budget": {"max_urls": -1}}),
    ]
    first, told, _, again, wrong = map(
        json.loads, asyncio.run(lived_through({"policy": {"default_delay_s": 0}}, history))
    )
    assert (len(first["assigned_urls"]), told["accepted"], len(again["assigned_urls"])) == (3, 1, 4)
    assert wrong["error"]["field"] == "max_urls"
