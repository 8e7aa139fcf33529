"""`[select]`: what crawls do that leave it open, by the names that forager gives it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crawlguide import Guide
from crawlguide.core import config
from crawlguide.core.config import Config
from crawlguide.core.errors import ConfigError
from crawlguide.testing import ManualClock
from tests.guide.common import pages
from tests.support import asked, running

FORAGER = """
[select]
pages_per_round = 3
slow_domain_ms = 3000
unreliable_threshold = 0.3
domain_max_pages = "auto"
max_depth = 9
min_samples_per_split = 7
"""


def configured(folder: Path, text: str = FORAGER) -> Config:
    (folder / "crawlguide.toml").write_text(text)
    return config.load(folder / "crawlguide.toml")


def opened(folder: Path, **definition: Any) -> Guide:
    guide = Guide.open(":memory:", config=configured(folder), clock=ManualClock())
    guide.define("default", {"policy": {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0}} | definition)
    return guide


def counting(guide: Guide) -> Any:
    return running(guide).definition


def test_crawls_that_leave_it_open_take_what_the_operator_says(tmp_path: Path) -> None:
    with opened(tmp_path) as guide:
        policy = counting(guide).policy
        assert (policy.slow_domain_ms, policy.unreliable_threshold, policy.domain_max_pages) == (3_000.0, 0.3, "auto")
        guide.seed("default", pages(9))
        assert len(asked(guide, max_urls=9)) == 3


def test_a_crawl_that_says_something_else_keeps_it(tmp_path: Path) -> None:
    own = {"robots": "ignore", "slow_domain_ms": 100, "crawlers": {"*": {"max_urls": 5}}, "domain_max_pages": 7}
    with opened(tmp_path, policy=own) as guide:
        policy = counting(guide).policy
        assert (policy.slow_domain_ms, policy.domain_max_pages, policy.unreliable_threshold) == (100.0, 7, 0.3)
        assert policy.crawlers["*"].max_urls == 5


def test_the_tree_of_tres_takes_it_as_its_options(tmp_path: Path) -> None:
    with opened(tmp_path, strategy={"kind": "tres", "max_depth": 4}) as guide:
        options = counting(guide).strategy
        assert (options["max_depth"], options["min_samples_per_split"], options["pages_per_round"]) == (4, 7, 3)
        assert "domain_max_pages" not in options  # auto is what it does by itself


def test_what_a_crawl_said_itself_is_what_is_kept_and_exported(tmp_path: Path) -> None:
    with opened(tmp_path) as guide:
        guide.patch("default", {"limits": {"max_pages": 5}})
        assert running(guide).record.definition.policy.unreliable_threshold == 0.8
        assert b'"unreliable_threshold":0.8' in next(guide.export("default"))


@pytest.mark.parametrize("kind", ["layered", "tres"])
def test_a_definition_that_is_shown_and_sent_back_leaves_open_what_was_left_open(tmp_path: Path, kind: str) -> None:
    with opened(tmp_path, strategy={"kind": kind}) as guide:
        before = running(guide).record.definition
        guide.define("default", guide.patch("default", {})["definition"])
        assert running(guide).record.definition == before


def test_a_misspelt_name_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'select.slow_domian_ms'; did you mean 'select.slow_domain_ms'"):
        configured(tmp_path, "[select]\nslow_domian_ms = 3000\n")


def test_the_environment_says_it_as_well() -> None:
    found = config.load(None, {"CRAWLGUIDE_SELECT_DOMAIN_MAX_PAGES": "auto", "CRAWLGUIDE_SELECT_PAGES_PER_ROUND": "20"})
    assert (found.select.domain_max_pages, found.select.pages_per_round) == ("auto", 20)


def test_a_crawl_that_only_begins_warm_takes_the_operators_strategy_with_it(tmp_path: Path) -> None:
    text = FORAGER + '[[predict]]\nkind = "tres"\n'
    with Guide.open(":memory:", config=configured(tmp_path, text), clock=ManualClock()) as guide:
        guide.define("first", {})
        guide.define("second", {"strategy": {"warm_start": "first"}})
        assert guide.stats("second")["crawls"]["second"]["strategy"] == "tres"


@pytest.mark.parametrize(("name", "value"), [("pages_per_round", 2_000_000), ("domain_max_pages", 2**53)])
def test_a_value_that_no_strategy_takes_is_refused_at_the_start(tmp_path: Path, name: str, value: int) -> None:
    with pytest.raises(ConfigError, match=f"select.{name}"):
        configured(tmp_path, f"[select]\n{name} = {value}\n")
