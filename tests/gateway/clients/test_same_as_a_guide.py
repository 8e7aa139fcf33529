"""A client is as good as a guide of one's own."""

from __future__ import annotations

import inspect
import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, assert_type

import msgspec
import pytest
from tests.gateway.clients.common import (
    FREE,
    Kind,
    asking,
    numbers,
    pages,
    telling,
)
from tests.gateway.conftest import Served

from crawlguide import AsyncClient, AsyncGuide, Client, Guide
from crawlguide.core.definition import Definition, Policy
from crawlguide.core.errors import CrawlGuideError, NotFound
from crawlguide.core.messages import VERSION, Ack, Advice, AskMessage, BudgetMessage, Fetch, ReportMessage

if TYPE_CHECKING:
    from collections.abc import Callable


def scrubbed(answer: Any) -> Any:
    """Without what differs from guide to guide: ids, instants and what is counted over all crawls."""
    text = answer if isinstance(answer, str) else json.dumps(answer, sort_keys=True)
    text = re.sub(r'"(request_id|lease_expires|uptime_s|num_queries_completed)": ("[^"]*"|null|[\d.e+-]+)', "", text)
    return re.sub(r"crawl-\d+", "crawl", text)


def page(crawl: str, host: str) -> str:
    """Of hosts that no other crawl knows: their pace is kept for all crawls together."""
    return f"https://{host}.{crawl}.example/"


SCRIPT_OF_A_CRAWL: list[Callable[[Any, str], Any]] = [
    lambda guide, crawl: guide.ask(asking(crawl, 3, context={"seed_urls": [page(crawl, "first")]})),
    lambda guide, crawl: guide.define(crawl, {"policy": FREE, "goal": {"keywords": ["sql"]}}),
    lambda guide, crawl: guide.define(crawl, Definition(policy=Policy(robots="ignore", default_delay_s=0))),
    lambda guide, crawl: guide.seed(crawl, [page(crawl, "a"), {"url": page(crawl, "b"), "priority": 0.9}]),
    lambda guide, crawl: guide.seed(crawl, (page(crawl, "a"),)),
    lambda guide, crawl: guide.seed(crawl, [{"url": page(crawl, "c"), "metadata": {"shelf": [1, "ä", None]}}]),
    lambda guide, crawl: guide.ask(asking(crawl, 2)),
    lambda guide, crawl: guide.tell(telling(crawl, page(crawl, "a"), page(crawl, "b"), "nonsense")),
    lambda guide, crawl: guide.tell(telling(crawl, page(crawl, "c"), report_id="one")),
    lambda guide, crawl: guide.tell(telling(crawl, page(crawl, "c"), report_id="one")),
    lambda guide, crawl: guide.ask(asking(crawl, 10, request_id="r")),
    lambda guide, crawl: guide.ask(asking(crawl, 10, request_id="r")),
    lambda guide, crawl: guide.ask(asking(crawl, 10)),
    lambda guide, crawl: guide.pause(crawl),
    lambda guide, crawl: guide.ask(asking(crawl)),
    lambda guide, crawl: guide.resume(crawl),
    lambda guide, crawl: guide.stats(crawl),
]


@pytest.mark.parametrize("strategy", ["layered", "breadth-first", "random"])
def test_a_crawl_goes_as_it_goes_with_a_guide_of_ones_own(guide: Any, crawl: str, strategy: str) -> None:
    with Guide.open(":memory:") as own:
        definition = {"strategy": {"kind": strategy}, "policy": {"robots": "ignore"}}
        assert guide.define(crawl, definition) is own.define(crawl, definition)
        for step in SCRIPT_OF_A_CRAWL:
            assert scrubbed(step(guide, crawl)) == scrubbed(step(own, crawl))


WRONG: list[Callable[[Any, str], Any]] = [
    lambda guide, crawl: guide.ask(asking(crawl, -3)),
    lambda guide, crawl: guide.ask(asking(crawl) | {"mcp_version": "1999-01"}),
    lambda guide, _: guide.ask({"crawler_id": "c-1"}),
    lambda guide, _: guide.ask([1, 2]),
    lambda guide, crawl: guide.ask(asking(crawl) | {"request_timestamp": {1, 2}}),
    lambda guide, crawl: guide.ask(asking(crawl, crawler_id="\ud800")),
    lambda guide, crawl: [guide.ask(asking(crawl, most, request_id="r")) for most in (1, 2)],
    lambda guide, crawl: guide.tell(telling(crawl) | {"fetches": 3}),
    lambda guide, crawl: [guide.tell(telling(crawl, *urls, report_id="r")) for urls in (pages(1), pages(2))],
    lambda guide, crawl: guide.define(crawl, {"police": {}}),
    lambda guide, _: guide.define("a/b", {}),
    lambda guide, _: guide.define("", {}),
    lambda guide, _: guide.define("x" * 201, {}),
    lambda guide, _: guide.define(7, {}),
    lambda guide, crawl: guide.seed(crawl, ["https://a.example/", "mailto:nobody@example.com"]),
    lambda guide, crawl: guide.seed(crawl, iter(["https://a.example/"])),
    lambda guide, _: guide.pause("nobody-made-this"),
    lambda guide, _: guide.resume("nobody-made-this"),
    lambda guide, _: guide.stats("nobody-made-this"),
]


@pytest.mark.parametrize("step", WRONG)
def test_what_is_wrong_is_raised_as_by_a_guide_of_ones_own(
    guide: Any, crawl: str, step: Callable[[Any, str], Any]
) -> None:
    with Guide.open(":memory:") as own, pytest.raises(CrawlGuideError) as expected:
        step(own, crawl)
    with pytest.raises(CrawlGuideError) as raised:
        step(guide, crawl)
    assert raised.type is expected.type
    assert scrubbed(raised.value.message) == scrubbed(expected.value.message)
    assert raised.value.field == expected.value.field


@pytest.mark.parametrize(("ours", "theirs"), [(Client, Guide), (AsyncClient, AsyncGuide)])
def test_every_method_of_a_guide_is_there_with_the_same_parameters(ours: Kind, theirs: Kind) -> None:
    for name, method in inspect.getmembers(theirs, inspect.isfunction):
        if not name.startswith("_") or name in {"__enter__", "__exit__", "__aenter__", "__aexit__"}:
            assert inspect.signature(getattr(ours, name)) == inspect.signature(method), name


def test_both_clients_have_the_same_methods() -> None:
    public = [{name for name in dir(one) if not name.startswith("_")} for one in (Client, AsyncClient)]
    assert public[0] == public[1]
    assert {"ask", "tell", "delete", "explain", "urls", "export"} <= public[0]


@pytest.mark.parametrize("name", ["..", ".", "a b:c%2F?#", "ü", "x" * 200])
def test_a_crawl_may_have_any_name_that_a_guide_takes(guide: Any, name: str) -> None:
    with suppress(NotFound):  # tests that make names up share the server
        guide.delete(name)
    assert guide.define(name, {})
    assert guide.seed(name, ["https://a.example/"]) == 1
    assert [one["url"] for one in guide.urls(name)] == ["https://a.example/"]
    assert json.loads(next(iter(guide.export(name))))["crawl"] == name
    assert numbers(guide, name)["queued"] == 1
    guide.delete(name)


def test_a_message_gives_a_message(served: Served, crawl: str) -> None:
    with Client(served.url) as guide:
        guide.seed(crawl, [{"url": "https://a.example/", "metadata": {"a": 1}}])
        advice = guide.ask(AskMessage(VERSION, "c-1", BudgetMessage(5), crawl_id=crawl))
        ack = guide.tell(ReportMessage(VERSION, "c-1", [Fetch("https://a.example/", 200)], crawl))
        assert_type(advice, Advice)
        assert_type(ack, Ack)
        assert_type(guide.ask(asking(crawl)), dict[str, Any])
    assert [(one.url, msgspec.json.encode(one.metadata)) for one in advice.assigned_urls] == [
        ("https://a.example/", b'{"a":1}')
    ]
    assert (ack.accepted, ack.results[0].status) == (1, "ok")


async def test_a_message_gives_a_message_in_an_asyncio_program(served: Served, crawl: str) -> None:
    async with AsyncClient(served.url) as guide:
        await guide.seed(crawl, ["https://a.example/"])
        advice = await guide.ask(AskMessage(VERSION, "c-1", BudgetMessage(5), crawl_id=crawl))
        ack = await guide.tell(ReportMessage(VERSION, "c-1", [Fetch("https://a.example/", 200)], crawl))
        assert_type(advice, Advice)
        assert_type(ack, Ack)
        assert_type(await guide.tell(telling(crawl)), dict[str, Any])
    assert (len(advice.assigned_urls), ack.accepted) == (1, 1)


def test_a_message_and_a_dictionary_that_are_given_stay_as_they_were(guide: Any, crawl: str) -> None:
    question, report = asking(crawl), ReportMessage(VERSION, "c-1", [], crawl)
    guide.ask(question)
    guide.tell(report)
    assert question == asking(crawl)
    assert report.report_id is None


def test_an_id_of_ones_own_is_kept(guide: Any, crawl: str) -> None:
    assert guide.ask(asking(crawl, request_id="mine"))["metadata"]["request_id"] == "mine"
