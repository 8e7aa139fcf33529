"""Every tool with the official client: what it gives, what it says to bad input, and that no answer is too long."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import pytest
from mcp.shared.exceptions import MCPError

from crawlguide.agents import texts, tools
from crawlguide.agents.messages import MOST_ASKED, schema
from crawlguide.agents.server import INSTRUCTIONS
from crawlguide.agents.tools import BY_NAME, MOST_CHARACTERS, TOOLS
from tests.agents.common import ERAS, answer, in_process, refusal, text

if TYPE_CHECKING:
    from mcp import Client

SEEDS = ["https://a.example/", "https://b.example/index", "https://c.example/index-2"]
CRAWL = {"crawl_id": "books", "topic": "database index", "seeds": SEEDS, "delay_s": 0}
HIDDEN = "look\u202e here\u200b\x1b[31m\U000e0041 now"


async def made(client: Client, **more: Any) -> dict[str, Any]:
    return answer(await client.call_tool("create_crawl", CRAWL | more))


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_learns_what_there_is(era: str) -> None:
    async with in_process(era=era) as (client, _):
        shown = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert client.instructions == INSTRUCTIONS
    assert set(shown) == set(BY_NAME)
    for tool in TOOLS:
        hints = shown[tool.name].annotations
        assert hints is not None
        assert (hints.read_only_hint, hints.destructive_hint) == (tool.reads_only, False)
        assert (hints.idempotent_hint, hints.open_world_hint) == (tool.repeatable, tool.name == "find_pages")
        assert shown[tool.name].output_schema == schema(tool.gives)
        assert len(shown[tool.name].description or "") > 50


def test_a_schema_is_in_one_piece_and_says_what_every_field_is_and_its_bounds() -> None:
    for tool in TOOLS:
        assert "$ref" not in json.dumps([schema(tool.takes), schema(tool.gives)])
        assert schema(tool.takes)["additionalProperties"] is False
        for name, field in schema(tool.takes)["properties"].items():
            parts = [field, *field.get("anyOf", [])]
            assert any("description" in part for part in parts), (tool.name, name)
    urls = schema(BY_NAME["next_urls"].takes)["properties"]["max_urls"]
    assert (urls["minimum"], urls["maximum"], urls["default"]) == (1, MOST_ASKED, 5)


@pytest.mark.parametrize("era", ERAS)
async def test_a_crawl_is_made_worked_and_looked_at(era: str) -> None:
    async with in_process(era=era) as (client, guide):
        assert await made(client) == {
            "crawl_id": "books", "created": True, "seeds_added": 3, "next": "next_urls gives what to fetch.",
        }  # fmt: skip
        await guide.patch("books", {"policy": {"robots": "ignore"}})
        more = {"crawl_id": "books", "urls": ["https://d.example/", SEEDS[0]]}
        added = answer(await client.call_tool("add_seeds", more))
        assert (added["added"], added["known"]) == (1, 1)
        asked = answer(await client.call_tool("next_urls", {"crawl_id": "books", "max_urls": 2}))
        first, second = (one["url"] for one in asked["assigned_urls"])
        page = {"url": first, "status": 200, "title": "A database index", "text": "An index of a database is a tree.",
                "outlinks": [{"url": "/next", "anchor": HIDDEN}]}  # fmt: skip
        told = {"crawl_id": "books", "fetches": [page, {"url": second, "error": "released"}]}
        ack = answer(await client.call_tool("report_fetches", told))
        assert (ack["accepted"], ack["discovered"]) == (2, 1)
        assert ack["results"][0]["relevance"] > 0.5
        numbers = answer(await client.call_tool("crawl_stats", {"crawl_id": "books"}))
        assert (numbers["done"], numbers["leased"], numbers["relevant"], numbers["harvest"]) == (1, 0, 1, 1.0)
        link = {"crawl_id": "books", "url": urljoin(first, "/next")}
        explained = answer(await client.call_tool("explain_url", link))
        assert explained["explanation"]["state"] == "queued"
        assert [link["anchor"] for link in explained["explanation"]["links"]] == ["look here[31m now"]
        assert explained["notice"] == texts.NOTICE
        for change, state in (("pause_crawl", "paused"), ("resume_crawl", "running")):
            assert answer(await client.call_tool(change, {"crawl_id": "books"}))["state"] == state
        (line,) = answer(await client.call_tool("list_crawls", {}))["crawls"]
        assert line == {"crawl_id": "books", "state": "running", "topic": "database index", "strategy": "layered"}


async def test_the_same_crawl_again_is_no_error_and_another_one_is() -> None:
    async with in_process() as (client, _):
        await made(client)
        again = await made(client)
        assert (again["created"], again["seeds_added"]) == (False, 0)
        wrong = refusal(await client.call_tool("create_crawl", CRAWL | {"topic": "cooking"}))
        assert (wrong["code"], wrong["field"]) == ("conflict", "crawl_id")


BAD: dict[str, list[tuple[dict[str, Any], str, str]]] = {
    "find_pages": [
        ({"topic": "x"}, "start", "start: required, but missing"),
        ({"topic": "x", "start": []}, "start", "expected a list of 1 to 20 URLs or host names, got []"),
        ({"topic": "x", "start": ["ftp://a.example/"]}, "start[0]", "start[0]: "),
        ({"topic": "x", "start": ["a.example"], "max_pages": 501}, "max_pages", "an integer from 1 to 500, got 501"),
        ({"topic": "x", "start": ["a.example"], "max_seconds": 601}, "max_seconds", "got 601"),
    ],
    "create_crawl": [
        ({"crawl_id": "a/b", "topic": "x"}, "crawl_id", "without slash"),
        ({"crawl_id": "a", "topic": "x", "sedes": []}, "sedes", "unknown field; expected one of allow_domains,"),
    ],
    "list_crawls": [({"limit": 1_000}, "limit", "an integer from 1 to 100, got 1000")],
    "add_seeds": [
        ({"crawl_id": "nowhere", "urls": SEEDS}, "crawl_id", "no crawl named 'nowhere'"),
        ({"crawl_id": "books", "urls": ["nonsense"]}, "urls[0]", "nonsense"),
    ],
    "next_urls": [({"crawl_id": "books", "max_urls": 21}, "max_urls", "an integer from 1 to 20, got 21")],
    "report_fetches": [
        ({"crawl_id": "books", "fetches": [{"url": SEEDS[0], "error": "tired"}]}, "fetches[0].error", 'got "tired"'),
        ({"crawl_id": "books", "fetches": [{"url": "u", "status": 200}] * 51}, "fetches", "at most 50 fetches"),
    ],
    "explain_url": [({"crawl_id": "books", "url": "https://new.example/"}, "url", "not known")],
    "search_frontier": [
        ({"crawl_id": "books", "state": "lost"}, "state", 'one of queued, leased, done, dropped, got "lost"'),
        ({"crawl_id": "books", "cursor": "nonsense"}, "cursor", "cursor: expected one of an answer before"),
    ],
    "crawl_stats": [({"crawl_id": "nowhere"}, "crawl_id", "no crawl named 'nowhere'")],
    "pause_crawl": [({"crawl_id": "nowhere"}, "crawl_id", "no crawl named 'nowhere'")],
    "resume_crawl": [({"crawl_id": "nowhere"}, "crawl_id", "no crawl named 'nowhere'")],
}  # fmt: skip


async def test_bad_input_is_told_which_field_what_was_expected_and_what_came() -> None:
    assert set(BAD) == set(BY_NAME)
    async with in_process() as (client, _):
        await made(client)
        for name, cases in BAD.items():
            for arguments, field, words in cases:
                wrong = refusal(await client.call_tool(name, arguments))
                assert wrong["field"] == field, (name, wrong)
                assert words in wrong["message"], (name, wrong)
        unknown = refusal(await client.call_tool("delete_everything", {}))
        assert unknown["code"] == "not_found"
        assert "expected one of find_pages, " in unknown["message"]


async def test_the_frontier_is_searched_by_state_host_and_text_page_by_page() -> None:
    async with in_process() as (client, guide):
        await made(client, seeds=[])
        many = [
            f"https://h{number % 3}.example/{'index' if number % 2 else 'other'}/{number:04}" for number in range(700)
        ]
        await guide.seed("books", many)
        found, cursor, calls = list[str](), None, 0
        while True:
            wanted = {"crawl_id": "books", "text": "INDEX", "host": "h1.example", "limit": 50}
            page = answer(await client.call_tool("search_frontier", wanted | ({"cursor": cursor} if cursor else {})))
            found += [one["url"] for one in page["urls"]]
            calls += 1
            if (cursor := page["cursor"]) is None:
                break
        assert sorted(found) == sorted(url for url in many if "h1." in url and "index" in url)
        assert calls > 2
        done = answer(await client.call_tool("search_frontier", {"crawl_id": "books", "state": "done"}))
        assert (done["urls"], done["cursor"]) == ([], None)


async def test_no_answer_is_longer_than_somebody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long URLs end a page of the list early, and a search for a word that is rare ends as well."""
    monkeypatch.setattr(tools, "MOST_SCANNED", 200)
    monkeypatch.setattr(tools, "SCANNED", 100)
    async with in_process() as (client, guide):
        await made(client, seeds=[])
        await guide.seed("books", [f"https://a.example/{number}/{'x' * 2_000}" for number in range(60)])
        first = await client.call_tool("search_frontier", {"crawl_id": "books", "limit": 100})
        assert len(text(first)) < 2 * MOST_CHARACTERS
        rest = answer(
            await client.call_tool(
                "search_frontier", {"crawl_id": "books", "limit": 100, "cursor": answer(first)["cursor"]}
            )
        )
        seen = {one["url"] for one in answer(first)["urls"] + rest["urls"]}
        assert len(seen) == len(answer(first)["urls"]) + len(rest["urls"]) > 20
        await guide.seed("books", [f"https://b.example/{number}" for number in range(500)])
        rare = answer(await client.call_tool("search_frontier", {"crawl_id": "books", "text": "nowhere"}))
        assert (rare["urls"], rare["scanned"]) == ([], 200)
        assert rare["cursor"] is not None


async def test_resources_are_listed_and_read() -> None:
    async with in_process() as (client, _):
        await made(client, crawl_id="long words, b%")
        listed = {str(one.uri) for one in (await client.list_resources()).resources}
        base = "crawl://long%20words%2C%20b%25"
        assert listed == {"crawls://list", f"{base}/stats", f"{base}/report"}
        templates = {one.uri_template for one in (await client.list_resource_templates()).resource_templates}
        assert templates == {"crawl://{id}/stats", "crawl://{id}/report"}
        read = {uri: getattr((await client.read_resource(uri)).contents[0], "text", "") for uri in listed}
        assert json.loads(read["crawls://list"])["crawls"][0]["crawl_id"] == "long words, b%"
        assert json.loads(read[f"{base}/stats"])["queued"] == 3
        assert "Topic: database index" in read[f"{base}/report"]
        for wrong, words in (
            ("crawl://nowhere/stats", "no crawl named"),
            ("crawl://books/secret", "expected crawls://list"),
        ):
            with pytest.raises(MCPError, match=words):
                await client.read_resource(wrong)


def test_words_of_strangers_are_short_and_hide_nothing() -> None:
    assert texts.plain(HIDDEN, 100) == "look here[31m now"
    assert texts.plain("a\n\tb\u2028c\x00", 100) == "a b c"
    assert texts.plain("word " * 100, 20) == "word word word word…"
    page = "Menu and more. " * 40 + "The b-tree index of a database keeps keys sorted. " + "Footer words. " * 40
    assert "b-tree index of a database" in texts.snippet(page, ("database", "index"), 200)
    assert len(texts.snippet(page, ("database",), 200)) <= 202
    assert texts.snippet("", ("database",), 200) == ""
