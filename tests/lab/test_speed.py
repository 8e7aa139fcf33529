"""The lived crawl of `crawlguide bench`: what its web is like, and that a guide grows on it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
import pytest

from crawlguide import Guide
from crawlguide.cli.bench import _lived_sizes
from crawlguide.core.errors import ConfigError
from crawlguide.lab.speed.frontier import CRAWL, OUTLINKS, ask_message, filled_guide
from crawlguide.lab.speed.in_process import warmed_up
from crawlguide.lab.speed.lived import Growth
from crawlguide.lab.speed.lived_web import DEFINITION, TOPIC, LivedWeb
from crawlguide.lab.speed.server import serving
from crawlguide.lab.speed.table import ROWS, sizes
from crawlguide.lab.synthetic.texts import TOPICS
from crawlguide.testing import ManualClock

if TYPE_CHECKING:
    from pathlib import Path

WORDS = set(TOPICS[TOPIC])


def test_the_web_is_the_same_for_the_same_calls() -> None:
    first, second = LivedWeb(50), LivedWeb(50)
    for url in first.seeds(20):
        assert first.fetch(url) == second.fetch(url)


def test_a_page_has_a_title_and_links_with_anchors() -> None:
    web = LivedWeb(50)
    page = next(page for url in web.seeds(50) if (page := web.fetch(url))["status"] == 200)
    assert page["title"]
    assert len(page["outlinks"]) == OUTLINKS
    assert all(link["anchor"] for link in page["outlinks"])


def test_anchors_foretell_the_relevance_of_pages() -> None:
    web = LivedWeb(50)
    homes = [web.fetch(url) for url in web.seeds(50)]
    links = [link for page in homes for link in page.get("outlinks", ()) if link["url"].startswith("https:")]
    told = [(link["anchor"], web.fetch(link["url"])) for link in links]
    pairs = [(bool(WORDS & set(anchor.split())), page["relevance"]) for anchor, page in told if page["status"] == 200]
    promising = [relevance for promises, relevance in pairs if promises]
    others = [relevance for promises, relevance in pairs if not promises]
    assert np.mean(promising) > 3 * np.mean(others)
    assert min(promising) < 0.2  # some disappoint


def test_its_crawl_has_a_goal_and_politeness_robots_traps_and_risk_on() -> None:
    web = LivedWeb(50)
    with Guide.open(":memory:") as guide:
        guide.define(CRAWL.name, DEFINITION)
        guide.tell(web.report(web.robots_files(), "files"))
        guide.seed(CRAWL.name, [*web.seeds(20), "https://h00021.example/members/rose"])
        answer = guide.ask({"mcp_version": "2025-11", "crawler_id": "c", "budget": {"max_urls": 30}})
    assert sorted(given["url"] for given in answer["assigned_urls"]) == web.seeds(20)
    assert answer["metadata"]["degraded"] is None  # all that robots.txt says is known
    assert {"politeness_ok", "traps_ok", "risk_ok", "robots_ok"} <= set(answer["metadata"]["filters_applied"])
    assert DEFINITION["goal"]


def test_a_crawl_grows_on_a_server_and_its_costs_are_counted(tmp_path: Path) -> None:
    said: list[str] = []
    with serving(tmp_path / "data", tmp_path) as server:
        growth = Growth(server, 100, said.append)
        first, second = growth.reach(1_000), growth.reach(1_500)
        growth.copy(tmp_path / "copy")
    assert 1_000 <= first["urls"] < second["urls"]
    for point in (first, second):
        assert min(point[name] for name in ("ask_cpu_us", "link_cpu_us", "reference_us", "resident_bytes")) > 0
        assert 0 < point["urls_per_ask"] <= 30
        assert 0 < point["new_links_per_page"] < OUTLINKS
    with Guide.open(tmp_path / "copy") as copied:
        (crawl,) = copied.stats()["crawls"].values()
    assert crawl["discovered"] >= second["urls"]
    assert crawl["relevant"] > 0


def test_the_lived_sizes_are_those_of_the_frontiers_that_grow_within_minutes() -> None:
    assert _lived_sizes(None, [5_000_000, 100_000, 1_000_000]) == [100_000, 1_000_000]
    assert _lived_sizes([500_000, 100_000], [10_000]) == [100_000, 500_000]
    assert _lived_sizes([0], [10_000]) == []
    with pytest.raises(ConfigError, match="--lived: expected 0 or at least 10000, got 50"):
        _lived_sizes([50, 20_000], [10_000])


def test_nothing_stays_leased_of_the_asks_that_warm_up() -> None:
    async def given_afterwards() -> tuple[float, int]:
        clock = ManualClock()
        guide = await filled_guide(":memory:", 100, 50, clock)
        try:
            first_us = await warmed_up(guide, clock, 5)
            return first_us, len((await guide.ask(ask_message("after"))).assigned_urls)
        finally:
            await guide.close()

    first_us, given = asyncio.run(given_afterwards())
    assert first_us > 0
    assert given == 30


def test_a_row_that_only_lived_crawls_have_is_left_out_of_the_other_table() -> None:
    filled = {name: 1.0 for _, keys, _ in ROWS for name in ((keys,) if isinstance(keys, str) else keys)} | {"urls": 9}
    assert "first after a start" in sizes([filled])
    filled.pop("first_asks_us")
    assert "first after a start" not in sizes([filled])
