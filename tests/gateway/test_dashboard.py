"""The status page over HTTP: what it shows, that looking changes nothing, and what its pieces are made of."""

from __future__ import annotations

import asyncio
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import numpy as np
import pytest
from starlette.requests import Request
from tests.gateway.conftest import serving

from crawlguide.core.clock import ManualClock
from crawlguide.core.config import Config
from crawlguide.core.definition import Definition
from crawlguide.core.messages import VERSION, AskMessage, ReportMessage, SeedsMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway import openapi
from crawlguide.gateway.access.entrance import Entrance
from crawlguide.gateway.dashboard import drawing, formatting, views
from crawlguide.gateway.dashboard.pages import HEADERS, Dashboard
from crawlguide.gateway.opening import open_guide
from crawlguide.guide.local import LocalGuide
from crawlguide.guide.monitoring import ANSWERS_SHOWN, BEST_SHOWN, HARVEST_POINTS, Recent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.gateway.conftest import Served

FREE = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0}
CRAWL = Crawl("default", "c")
APART = {"dt", "dd", "td", "th", "p", "div"}  # the text of these does not run into what stands before


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server without the crawls of other tests."""
    with serving(tmp_path_factory.mktemp("quiet")) as server:
        yield server
        assert server.stop() == 0
        assert "Traceback" not in server.said()


@pytest.fixture(scope="module")
def door(quiet: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=quiet.url, timeout=30.0, trust_env=False) as client:
        yield client


def test_what_anybody_may_read_is_made_once() -> None:
    async def read_twice() -> list[bytes]:
        config = Config()
        guide = open_guide(":memory:", config)
        pages = Dashboard(guide, Entrance(config), print)
        scope = {"type": "http", "headers": []}
        return [bytes((await pages._docs(Request(scope))).body) for _ in range(2)]

    first, second = asyncio.run(read_twice())
    assert first is second
    assert openapi.encoded() is openapi.encoded()


def ask(door: httpx.Client, crawl: str, crawler: str = "c-1", max_urls: int = 1) -> list[dict[str, Any]]:
    message = {"mcp_version": VERSION, "crawler_id": crawler, "crawl_id": crawl, "budget": {"max_urls": max_urls}}
    given: list[dict[str, Any]] = door.post("/v1/next", json=message).raise_for_status().json()["assigned_urls"]
    return given


def tell(door: httpx.Client, crawl: str, *fetches: dict[str, Any]) -> None:
    message = {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "fetches": list(fetches)}
    door.post("/v1/report", json=message).raise_for_status()


def page(address: str, *links: str, **more: Any) -> dict[str, Any]:
    return {"url": address, "status": 200, "elapsed_ms": 80, "outlinks": [{"url": link} for link in links]} | more


@pytest.fixture(scope="module")
def databases(door: httpx.Client) -> str:
    """A crawl in which something of everything happened."""
    goal = {"topic": "database engines", "keywords": ["index", "b-tree"]}
    policy = FREE | {"deny_domains": ["shop.example"], "max_per_host": 2}
    door.put("/v1/crawls/databases", json={"goal": goal, "policy": policy}).raise_for_status()
    links = [f"https://{host}.example/{number}" for host in ("a", "b", "shop") for number in range(9)]
    tell(door, "databases", page("https://a.example/", *links, relevance=0.9), page("https://b.example/", relevance=0))
    tell(door, "databases", {"url": "https://c.example/", "status": 404})
    ask(door, "databases", "crawler-7", max_urls=2)
    return "databases"


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, {name: value or "" for name, value in attrs}))
        self.text += " " if tag in APART else ""

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(door: httpx.Client, path: str) -> str:
    """The text of a page, its spaces all alike."""
    return re.sub(r"\s+", " ", Tags(door.get(path).raise_for_status().text).text)


def test_the_overview_says_how_every_crawl_is_doing(door: httpx.Client, databases: str) -> None:
    text = shown(door, "/")
    for part in (
        "databases running layered", "database engines", "33 % relevant", "relevant 1", "fetches 3", "failed 1",
        "queued 16", "leased 2", "done 3", "asks 1", "assigned 2", "scope 9",
    ):  # fmt: skip
        assert part in text, part


def test_the_page_of_a_crawl_shows_goal_harvest_next_urls_hosts_drops_and_decisions(
    door: httpx.Client, databases: str
) -> None:
    text = shown(door, f"/crawls/{databases}")
    for part in (
        "database engines", "b-tree", "1 of 3 fetches", "scope 9", "https://a.example/", "enough of this host",
        "1 0 80 ms 0.90 now –", "c.example 0 0 1", "crawler-7", "freshness, relevance",
    ):  # fmt: skip
        assert part in text, part


def test_looking_changes_nothing(door: httpx.Client, databases: str) -> None:
    before = door.get("/v1/stats", params={"crawl_id": databases}).json()["crawls"]
    urls = door.get("/v1/urls", params={"crawl_id": databases}).json()
    for path in ("/", f"/crawls/{databases}"):
        door.get(path).raise_for_status()
    assert door.get("/v1/stats", params={"crawl_id": databases}).json()["crawls"] == before
    assert door.get("/v1/urls", params={"crawl_id": databases}).json() == urls


@pytest.mark.parametrize("path", ["/", "/crawls/databases", "/crawls/nobody-made-this", f"/crawls/{'x' * 201}"])
def test_every_page_forbids_what_it_does_not_need(door: httpx.Client, databases: str, path: str) -> None:
    reply = door.get(path)
    assert reply.status_code == (404 if "x" * 9 in path or "nobody" in path else 200)
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert {name: reply.headers[name] for name in HEADERS} == HEADERS


@pytest.mark.parametrize("path", ["/", "/crawls/databases"])
def test_nothing_is_inline_and_nothing_comes_from_elsewhere(door: httpx.Client, databases: str, path: str) -> None:
    for tag, attributes in Tags(door.get(path).text).seen:
        assert tag != "style"
        assert not [name for name in attributes if name == "style" or name.startswith("on")]
        source = attributes.get("src") or (attributes.get("href", "") if tag == "link" else "")
        assert tag != "script" or source
        assert not source or source.startswith(("/static/", "data:image/svg+xml,"))
        if tag == "a" and not attributes["href"].startswith("/"):
            assert attributes["href"].startswith("https://")
            assert attributes["rel"] == "noreferrer noopener nofollow"


def test_every_url_leads_to_its_explanation(door: httpx.Client, databases: str) -> None:
    tags = Tags(door.get(f"/crawls/{databases}").text).seen
    links = [attributes["href"] for tag, attributes in tags if tag == "a" and attributes.get("class") == "why"]
    assert len(links) == 14  # of either host as many as an ask looks at, and the two that were given
    for link in links:
        assert door.get(link).raise_for_status().json()["state"] in {"queued", "leased"}


def test_static_files_are_kept_and_others_are_not_there(door: httpx.Client) -> None:
    assert door.get("/static/style.css").headers["content-type"] == "text/css; charset=utf-8"
    assert "immutable" in door.get("/static/refresh.js").headers["cache-control"]
    for path in ("/static/nothing.css", "/static/..%2fpages.py", "/static/", "/crawls/a/b"):
        assert door.get(path).status_code == 404


# what it is made of


@pytest.mark.parametrize("address", ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "ftp://a/", ""])
def test_only_the_web_is_linked(address: str) -> None:
    assert formatting.outside(address) is None
    assert formatting.outside("https://a.example/" + address) == "https://a.example/" + address


def test_a_crawl_that_no_browser_can_name_has_no_link() -> None:
    assert [formatting.crawl_page(name) for name in (".", "..", "a b?")] == [None, None, "/crawls/a%20b%3F"]


def test_a_url_is_shown_whole() -> None:
    for address in ("https://a.example:8/b?c#d", "http://a.example", "https:///x", "http://[", "mailto:a@b", ""):
        assert "".join(formatting.pieces(address)) == address


def test_numbers_read_well() -> None:
    spans = [formatting.span(s).replace(formatting.THIN, " ") for s in (-1, 0.32, 4.25, 61, 180, 7_200, 900_000)]
    assert spans == ["0 ms", "320 ms", "4.2 s", "61 s", "3 min", "2 h", "10 d"]
    shares = [formatting.percent(s).replace(formatting.THIN, " ") for s in (None, 0.004, 0.37, 1)]
    assert shares == ["–", "0.4 %", "37 %", "100 %"]


def test_a_harvest_keeps_few_points_and_the_newest() -> None:
    recent, told = Recent(), 0
    for _ in range(100_000):
        told += 1
        if recent.due(1):
            recent.sample(told, told // 2)
        assert len(recent.harvest) < HARVEST_POINTS
    assert len(recent.harvest) > HARVEST_POINTS / 3
    assert told - recent.harvest[-1][0] < told / 200


def test_a_curve_shows_the_share_so_far_and_lately() -> None:
    curve = drawing.curve([(100, 0), (200, 100)], 200, 100)
    assert curve is not None
    assert (curve.top, curve.lately, curve.lately_of) == (1.0, 1.0, 20)
    assert [bar.height for bar in curve.bars] == [0.0] * 20 + [100.0] * 20
    assert curve.line.endswith("L1000.0 50.00")
    assert drawing.curve([], 0, 0) is None


def test_terms_that_take_away_lie_over_the_end_of_the_others() -> None:
    drawn = drawing.parts({"relevance": 0.5, "cost": -0.2, "focus": 0.3}, 0.8)
    assert [(part.term, part.x, part.width) for part in drawn] == [
        ("relevance", 0.0, 62.5), ("focus", 62.5, 37.5), ("cost", 75.0, 25.0),
    ]  # fmt: skip


async def guide_with(clock: ManualClock, definition: dict[str, Any], *seeds: str) -> LocalGuide:
    guide = open_guide(":memory:", Config(), clock)
    await guide.define(CRAWL, msgspec.convert(definition, Definition))
    await guide.seed(CRAWL, SeedsMessage([*seeds]))
    return guide


def report(*fetches: dict[str, Any]) -> ReportMessage:
    message = {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": "c", "fetches": list(fetches)}
    return msgspec.convert(message, ReportMessage)


async def test_hosts_in_trouble_are_named() -> None:
    clock = ManualClock()
    definition = {"policy": {"robots": "ignore", "default_delay_s": 1, "domain_max_pages": 3}}
    guide = await guide_with(clock, definition, *(f"https://{host}.example/next" for host in "abce"))
    for number in range(12):
        lost = {"url": f"https://a.example/{number}", "error": "connect"}
        await guide.tell(report(lost, page(f"https://e.example/{number}", elapsed_ms=9_000)))
    await guide.tell(report({"url": "https://b.example/", "status": 503, "retry_after_s": 300}))
    await guide.tell(report(*(page(f"https://c.example/{number}") for number in range(3))))
    ask = {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": "c", "budget": {"max_urls": 10}}
    await guide.ask(msgspec.convert(ask, AskMessage))
    await guide.seed(CRAWL, SeedsMessage(["https://a.example/after"]))
    await guide.ask(msgspec.convert(ask, AskMessage))
    found = {host.name: host for host in (await views.detail(guide, CRAWL)).hosts}
    said = {name[0]: host.troubles for name, host in found.items()}
    assert said == {"a": ["failing"], "b": ["throttled"], "c": ["full"], "e": ["full", "slow"]}
    assert found["b.example"].opens_in_s == pytest.approx(300, abs=1)
    assert found["a.example"].withheld_s > 500


async def test_of_many_hosts_those_that_fail_and_those_with_most_waiting_are_shown() -> None:
    seeds = [f"https://h{host}.example/{number}" for host in range(40) for number in range(host + 1)]
    guide = await guide_with(ManualClock(), {"policy": FREE}, *seeds)
    await guide.tell(report({"url": "https://h0.example/0", "status": 404}))
    hosts, waiting, withheld = await guide.store.hosts(CRAWL, 10)
    assert hosts.name.tolist() == ["h0.example", *(f"h{number}.example" for number in range(39, 30, -1))]
    assert waiting.tolist() == [0, *range(40, 31, -1)]
    assert hosts.failures.tolist() == [1.0] + [0.0] * 9
    assert not np.isfinite(withheld).any()


async def test_a_robots_txt_that_crawlers_read_makes_no_bar_of_a_page_small() -> None:
    """It has a score of its own, far above all pages."""
    guide = await guide_with(ManualClock(), {"policy": FREE | {"robots": "crawler"}}, "https://a.example/")
    ask = {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": "c", "budget": {"max_urls": 8}}
    await guide.ask(msgspec.convert(ask, AskMessage))
    await guide.tell(report({"url": "https://a.example/robots.txt", "status": 200, "text": ""}))
    await guide.ask(msgspec.convert(ask, AskMessage))
    page, rules = views.decisions(guide, CRAWL)
    assert (rules.url, rules.reason) == ("https://a.example/robots.txt", views.RULES_FIRST)
    assert max(part.x + part.width for part in page.parts) == pytest.approx(100, abs=0.1)
    assert max(part.x + part.width for part in rules.parts) > 100  # the frame of the drawing ends before


async def test_of_the_answers_the_newest_are_kept_and_of_each_the_best_urls() -> None:
    guide = await guide_with(ManualClock(), {"policy": FREE}, *(f"https://a.example/{n}" for n in range(600)))
    for number in range(ANSWERS_SHOWN + 10):
        ask = {"mcp_version": VERSION, "crawler_id": f"c-{number}", "crawl_id": "c", "budget": {"max_urls": 8}}
        await guide.ask(msgspec.convert(ask, AskMessage))
    kept = guide.recent[CRAWL].answers
    assert [(answer.crawler_id, answer.given) for answer in kept] == [(f"c-{n}", 8) for n in range(10, 60)]
    assert {len(answer.best) for answer in kept} == {BEST_SHOWN}
    first = views.decisions(guide, CRAWL)[:BEST_SHOWN]
    assert [choice.given and choice.given.more for choice in first] == [0, 0, 8 - BEST_SHOWN]
    await guide.delete(CRAWL)
    assert not guide.recent
