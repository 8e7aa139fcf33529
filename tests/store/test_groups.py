"""Hosts that share one pace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crawlguide import Guide
from crawlguide.core.config import Config, StoreOptions
from crawlguide.core.errors import ConfigError
from crawlguide.store.tables.sharing import queue_of, read
from crawlguide.testing import ManualClock
from tests.support import NOW, ask, fetched, store_of, tell

if TYPE_CHECKING:
    from pathlib import Path

SHARED = Config(store=StoreOptions(politeness_groups=("shops = a.example b.example", "campus = example.edu")))
URLS = ["https://a.example/1", "https://x.b.example/1", "https://c.example/1"]


def test_a_group_covers_sub_domains_and_ports() -> None:
    groups = read(["shops = A.example b.example"])
    assert queue_of("www.a.example:8080", groups) == queue_of("b.example", groups) == "group shops"
    assert queue_of("a.example.org", groups) == "a.example.org"


@pytest.mark.parametrize("text", ["shops", "= a.example", "shops =", "shops = a.example:x"])
def test_what_is_no_group_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="politeness_groups"):
        read([text])


@pytest.mark.parametrize("data", [":memory:", "folder"])
def test_hosts_of_a_group_are_asked_one_after_the_other_also_after_a_restart(tmp_path: Path, data: str) -> None:
    path = data if data == ":memory:" else str(tmp_path)
    with Guide.open(path, clock=ManualClock(NOW), config=SHARED) as guide:
        guide.define("default", {"policy": {"robots": "ignore", "default_delay_s": 2}})
        guide.seed("default", URLS)
        waits = {one["url"]: one["not_before_ms"] for one in ask(guide)["assigned_urls"]}
        assert sorted(waits[url] for url in URLS[:2]) == [0, 2_000]
        assert waits[URLS[2]] == 0
    if data != ":memory:":
        with Guide.open(path, clock=ManualClock(NOW + 1), config=SHARED) as guide:
            tell(guide, fetched("https://c.example/", "https://b.example/2"))
            (one,) = ask(guide)["assigned_urls"]
            assert one["not_before_ms"] == 3_000


def test_the_longest_delay_of_a_group_holds_for_all() -> None:
    with Guide.open(":memory:", clock=ManualClock(NOW), config=SHARED) as guide:
        guide.define("default", {"policy": {"robots": "ignore", "default_delay_s": 1}})
        guide.seed("default", URLS)
        for queue, delay_s in (("a.example", 4.0), ("x.b.example", 3.0)):
            guide._run(store_of(guide).control(queue, delay_s=delay_s))
        waits = {one["url"]: one["not_before_ms"] for one in ask(guide)["assigned_urls"]}
        assert sorted(waits[url] for url in URLS[:2]) == [0, 4_000]
