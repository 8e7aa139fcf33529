"""Whatever is asked and told: every door gives the same answers as the library.

Guides with one seed and one time live through the same random history, each behind its own door.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.gateway.every_door import CRAWL, DOORS, OTHERWISE, Library

from crawlguide import AsyncGuide
from crawlguide.core.config import Config, ServerOptions
from crawlguide.core.messages import VERSION, AskMessage, ReportMessage
from crawlguide.gateway import doctor, doors, serve, wire
from crawlguide.gateway.opening import MEMORY, open_guide
from crawlguide.gateway.service import Service
from crawlguide.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED = 7
CONFIG = Config(server=ServerOptions(port=0))
KINDS = ("layered", "relational", "best-first", "breadth-first", "depth-first", "random")
Step = tuple[str, Any]

# histories: few hosts, pages, crawlers and ids, so that they meet

pages = st.builds("https://h{}.example{}.org/{}".format, st.integers(0, 3), st.integers(0, 1), st.integers(0, 5))
crawlers = st.sampled_from(["c-1", "c-2", "gpu-1"])
unit = st.floats(0, 1)
fates = st.one_of(
    st.fixed_dictionaries({"status": st.sampled_from([200, 200, 200, 404, 429, 500, 301])}),
    st.fixed_dictionaries({"error": st.sampled_from(["timeout", "dns", "released"])}),
)
fetches = st.builds(
    lambda url, fate, links, more: {"url": url, "outlinks": [{"url": link} for link in links], **fate, **more},
    pages, fates, st.lists(pages, max_size=5),
    st.fixed_dictionaries(
        {}, optional={"relevance": unit, "elapsed_ms": st.floats(1, 9_000), "title": st.text(max_size=9)}
    ),
)  # fmt: skip
asks = st.fixed_dictionaries(
    {"mcp_version": st.just(VERSION), "crawl_id": st.just(CRAWL), "crawler_id": crawlers,
     "budget": st.fixed_dictionaries(
         {"max_urls": st.integers(-1, 6)}, optional={"timeout_ms": st.integers(1, 60_000)})},
    optional={"request_id": st.sampled_from(["r-1", "r-2"]), "context": st.fixed_dictionaries(
        {}, optional={"seed_urls": st.lists(pages, max_size=3), "recent_history": st.lists(fetches, max_size=2)})},
)  # fmt: skip
tells = st.fixed_dictionaries(
    {"mcp_version": st.just(VERSION), "crawl_id": st.just(CRAWL), "crawler_id": crawlers,
     "fetches": st.lists(fetches, max_size=4)},
    optional={"report_id": st.sampled_from(["t-1", "t-2"])},
)  # fmt: skip
named = st.fixed_dictionaries(
    {}, optional={"hosts": st.lists(st.sampled_from(["h0.example0.org", "h1.example1.org"]), max_size=2),
                  "patterns": st.lists(st.sampled_from(["/[0-2]$", "example1"]), max_size=2)}
)  # fmt: skip
rules = st.fixed_dictionaries(
    {}, optional={"ban": named, "unban": named,
                  "priority": st.fixed_dictionaries({"hosts": st.dictionaries(st.just("h2.example0.org"), unit)})}
)  # fmt: skip
steps = st.one_of(
    st.tuples(st.just("ask"), asks),
    st.tuples(st.just("ask"), asks),
    st.tuples(st.just("tell"), tells),
    st.tuples(st.just("release"), crawlers),
    st.tuples(st.just("rules"), rules),
    st.tuples(st.just("wait"), st.sampled_from([0.3, 2.0, 40.0, 700.0])),
)
definitions = st.fixed_dictionaries({
    "strategy": st.fixed_dictionaries({"kind": st.sampled_from(KINDS)}),
    "policy": st.fixed_dictionaries({
        "default_delay_s": st.sampled_from([0, 1.0]),
        "max_per_host": st.sampled_from([0, 2]),
        "crawlers": st.sampled_from([{}, {"gpu-*": {"max_leases": 2, "allow_domains": ["example1.org"]}}]),
    }),
})  # fmt: skip


class Life:
    """All doors, each to a guide of its own, which is replaced for each history."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.doors: list[Library] = []
        self._opened, self._ends = asyncio.Event(), asyncio.Event()
        self.runner.run(self._begin())

    async def _begin(self) -> None:
        self._living = asyncio.create_task(self._live())  # some clients must be left by the task that entered them
        await asyncio.wait(
            {self._living, asyncio.create_task(self._opened.wait())}, return_when=asyncio.FIRST_COMPLETED
        )
        if self._living.done():
            self._living.result()

    async def _live(self) -> None:
        async with AsyncExitStack() as stack:
            for kind in DOORS:
                service = Service(open_guide(MEMORY, CONFIG), CONFIG)
                door = kind(service, await kind.listen(service, stack))
                await door.enter(stack)
                self.doors.append(door)
            self._opened.set()
            await self._ends.wait()

    def fresh(self, clock: ManualClock) -> None:
        for door in self.doors:
            door.service.guide = open_guide(MEMORY, CONFIG, clock, SEED)

    def close(self) -> None:
        self._ends.set()
        self.runner.run(self._end())
        self.runner.close()

    async def _end(self) -> None:
        await self._living


@pytest.fixture(scope="module")
def life() -> Iterator[Life]:
    opened = Life()
    yield opened
    opened.close()


async def lived_through(life: Life, definition: dict[str, Any], history: list[Step]) -> list[bytes]:
    """All answers, which must be the same behind each door."""
    clock, heard = ManualClock(), []
    life.fresh(clock)
    for door in life.doors:
        await AsyncGuide(door.service.guide).define(CRAWL, definition)
    for kind, word in history:
        if kind == "wait":
            clock.advance(word)
            continue
        answers = [await getattr(door, kind)(word) for door in life.doors]
        for door, answer in zip(life.doors, answers, strict=True):
            assert door.agrees(answer, answers[0]), (type(door).__name__, kind, word, answer, answers[0])
        heard.append(answers[0])
    numbers = [wire.encode((await door.service.guide.stats()).crawls) for door in life.doors]
    assert numbers == [numbers[0]] * len(numbers)
    for door in life.doors:
        await door.end()
        await door.service.guide.close()
    return heard


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(definition=definitions, history=st.lists(steps, min_size=1, max_size=30))
def test_any_history_reads_the_same_through_every_door(
    life: Life, definition: dict[str, Any], history: list[Step]
) -> None:
    life.runner.run(lived_through(life, definition, history))


def test_a_history_in_which_something_happens(life: Life) -> None:
    """So that the above is known to compare more than refusals."""
    me = {"mcp_version": VERSION, "crawl_id": CRAWL, "crawler_id": "c-1"}
    seeds = [f"https://h{number}.example0.org/1" for number in range(4)]
    found = {"url": seeds[0], "status": 200, "relevance": 0.9, "outlinks": [{"url": "/2"}]}
    history: list[Step] = [
        ("ask", {**me, "budget": {"max_urls": 3}, "context": {"seed_urls": seeds}}),
        ("tell", {**me, "fetches": [found]}),
        ("rules", {"ban": {"hosts": ["h1.example0.org"]}}),
        ("release", "c-1"),
        ("wait", 40.0),
        ("ask", {**me, "budget": {"max_urls": 9}}),
        ("ask", {**me, "budget": {"max_urls": -1}}),
    ]
    answers = list(map(json.loads, life.runner.run(lived_through(life, {"policy": {"default_delay_s": 0}}, history))))
    first, told, _, released, again, wrong = answers
    assert (len(first["assigned_urls"]), told["accepted"], released) == (3, 1, {"released": 2})
    assert sorted(one["url"] for one in again["assigned_urls"]) == [
        "https://h0.example0.org/2", "https://h2.example0.org/1", "https://h3.example0.org/1",
    ]  # fmt: skip
    assert wrong["error"]["field"] == "budget.max_urls"


def test_a_message_and_a_dictionary_are_answered_alike() -> None:
    async def both() -> None:
        clock = ManualClock()
        one, other = (AsyncGuide.open(clock=clock, seed=SEED) for _ in range(2))
        ask = {"mcp_version": VERSION, "crawler_id": "c-1", "budget": {"max_urls": 3}}
        ask["context"] = {"seed_urls": ["https://a.example/", "https://b.example/"]}
        tell = {"mcp_version": VERSION, "crawler_id": "c-1", "fetches": [{"url": "https://a.example/", "status": 200}]}
        assert await one.ask(ask) == msgspec.to_builtins(await other.ask(wire.convert(ask, AskMessage)))
        assert await one.tell(tell) == msgspec.to_builtins(await other.tell(wire.convert(tell, ReportMessage)))
        await one.close()
        await other.close()

    asyncio.run(both())


def test_every_door_of_the_server_is_one_of_these() -> None:
    """A door that is added to the server is added to `every_door`, too."""
    named = {setting for door in DOORS for setting in door.settings} | OTHERWISE.keys()
    assert {kind.setting for kind in doors.DOORS} == named


def test_the_port_of_every_door_is_known_to_all_who_look_at_ports() -> None:
    """Who counts connections, refuses one port for two doors, looks whether they are free, and says where they are."""
    others = [name for name in ServerOptions.__struct_fields__ if name.endswith("_port")]
    options = msgspec.convert({name.removesuffix("_port"): True for name in others}, ServerOptions)
    assert {*options.ports} == {"server.port", *(f"server.{name}" for name in others)}
    assert {*doctor.NAME_OF} == {*options.ports}
    assert serve.other_doors(dict.fromkeys(others, 7)).count(" on port 7") == len(others)
