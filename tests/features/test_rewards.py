"""What a fetch is worth: by the weights of the goal, by what the crawl has met, and by what is told later."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from crawlguide import Guide
from crawlguide.core.definition import Reward
from crawlguide.core.messages import Fetch
from crawlguide.core.notebook import Notebook
from crawlguide.features.rewards import Rewards
from crawlguide.guide.tell.intake import reported
from crawlguide.testing import ManualClock
from tests.strategies.lessons import RULES
from tests.support import CRAWL, NOW, ask, asked, fetched, tell

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

A, B = "https://a.example/", "https://b.example/"
POLICY = {"default_delay_s": 0, "max_per_host": 0, "robots": "ignore", "traps": False, "risk_threshold": 1}


def hear(rewards: Rewards, *fetches: dict[str, Any]) -> list[float]:
    messages = msgspec.convert([{"status": 200} | fetch for fetch in fetches], list[Fetch])
    worth = rewards.hear(asyncio.run(reported(messages, CRAWL, "c-1", NOW, RULES)).fetches)[0]
    return [round(float(one), 6) for one in worth]


def paid(weights: Mapping[str, float], *fetches: dict[str, Any]) -> list[float]:
    return hear(Rewards(Reward(**weights)), *fetches)


# gains


@pytest.mark.parametrize("relevance", [0.0, 0.3, 1.0])
def test_a_new_page_is_worth_its_relevance(relevance: float) -> None:
    assert paid({}, {"url": A, "relevance": relevance, "content_hash": "x"}) == [relevance]


def test_of_a_page_nobody_judged_nothing_is_learned() -> None:
    assert np.isnan(paid({}, {"url": A, "content_hash": "x"})).all()


def test_a_page_that_brings_nothing_new_is_worth_less_also_within_one_tell() -> None:
    same = [{"url": url, "relevance": 1.0, "content_hash": "x"} for url in (A, B)]
    assert paid({"novelty": 0.25}, *same) == [1.0, 0.75]


def test_without_hashes_nothing_counts_as_new_or_old() -> None:
    assert paid({"novelty": 0.25}, {"url": A, "relevance": 1.0}, {"url": B, "relevance": 1.0}) == [1.0, 1.0]


def test_a_page_that_changed_is_worth_more_than_one_that_did_not() -> None:
    rewards = Rewards(Reward(novelty=0.25, change=0.5))
    hear(rewards, {"url": A, "relevance": 0.25, "content_hash": "x"})
    assert hear(rewards, {"url": A, "relevance": 0.25, "content_hash": "y"}) == [0.75]
    assert hear(rewards, {"url": A, "relevance": 0.25, "content_hash": "y"}) == [0.0]


def test_a_crawl_may_be_after_new_content_alone() -> None:
    told = [{"url": A, "content_hash": "x"}, {"url": B, "content_hash": "x"}, {"url": B + "2", "content_hash": "y"}]
    assert paid({"relevance": 0, "novelty": 1, "change": 0}, *told) == [1.0, 0.0, 1.0]


def test_content_belongs_to_where_a_redirect_led() -> None:
    told = [{"url": A, "redirected_to": B, "relevance": 1.0, "content_hash": "x"}]
    told += [{"url": B, "relevance": 1.0, "content_hash": "x"}]
    assert paid({"novelty": 0, "change": 0, "duplicate": 1}, *told) == [1.0, 1.0]


# penalties


def test_a_failure_is_worth_nothing_and_less_than_a_page_off_the_goal_if_errors_weigh() -> None:
    told = [{"url": A, "status": 503}, {"url": B, "relevance": 0.0}, {"url": B + "2", "relevance": 1.0}]
    assert paid({}, *told) == [0.0, 0.0, 1.0]
    assert paid({"error": 1}, *told) == [0.0, 0.5, 1.0]


def test_a_copy_of_another_page_is_worth_less_if_duplicates_weigh() -> None:
    told = [{"url": url, "relevance": 1.0, "content_hash": "x"} for url in (A, B, A)]
    assert paid({"novelty": 0, "change": 0, "duplicate": 1}, *told) == [1.0, 0.5, 1.0]


def test_what_was_slow_and_heavy_is_worth_less_if_cost_weighs() -> None:
    quick = {"url": A, "relevance": 1.0, "elapsed_ms": 0, "bytes": 0}
    slow = {"url": B, "relevance": 1.0, "elapsed_ms": 60_000, "bytes": 1 << 30}
    assert paid({"cost": 1}, quick, slow) == [1.0, 0.5]
    assert paid({}, quick, slow) == [1.0, 1.0]


# what is told


def test_a_reward_stands_for_all_else() -> None:
    told = [{"url": A, "relevance": 0.0, "reward": 7.0}, {"url": B, "status": 500, "reward": 0.25}]
    assert paid({"error": 1}, *told) == [1.0, 0.25]


def test_what_came_back_unused_was_worth_nothing_to_learn_from() -> None:
    assert np.isnan(paid({}, {"url": A, "status": None, "error": "released"})).all()


def test_where_no_gain_has_a_weight_only_told_rewards_teach() -> None:
    nothing = {"relevance": 0, "novelty": 0, "change": 0}
    first, second = paid(nothing, {"url": A, "relevance": 1.0}, {"url": B, "relevance": 1.0, "reward": 0.5})
    assert np.isnan(first)
    assert second == 0.5


# memory


def test_what_was_met_lies_in_the_notebook() -> None:
    notebook, first, second = Notebook(), Rewards(Reward()), Rewards(Reward())
    first.remember(notebook)
    hear(first, {"url": A, "relevance": 1.0, "content_hash": "x"})
    second.remember(notebook)
    assert hear(second, {"url": B, "relevance": 1.0, "content_hash": "x"}) == [0.8]


@pytest.mark.parametrize("reopened", [False, True])
def test_a_guide_goes_on_with_what_was_met(tmp_path: Path, reopened: bool) -> None:
    """Two hosts are alike, but what one of them holds was met before: new links there are worth less."""
    hosts = [f"https://{name}.example/" for name in ("old", "new")]
    guide = Guide.open(tmp_path, clock=ManualClock())
    goal = {"reward": {"novelty": 1.0}}
    guide.define("default", {"goal": goal, "strategy": {"kind": "layered", "without": ["draws"]}, "policy": POLICY})
    guide.seed("default", [A, *hosts])
    ask(guide)
    tell(guide, *(fetched(f"{A}{n}", relevance=1.0, content_hash=f"old {n}") for n in range(5)))
    if reopened:
        guide.close()
        guide = Guide.open(tmp_path, clock=ManualClock())
    else:
        guide.define("default", {"goal": goal, "policy": POLICY | {"max_retries": 2}})
    for host, name in zip(hosts, ("old", "new"), strict=True):
        tell(guide, fetched(host, *(f"{host}page{n}" for n in range(8)), relevance=0.0))
        ids = range(5)
        tell(guide, *(fetched(f"{host}page{n}", relevance=1.0, content_hash=f"{name} {n}") for n in ids))
    left = asked(guide, max_urls=6)
    guide.close()
    assert [url.startswith(hosts[1]) for url in left] == [True] * 3 + [False] * 3


def test_p_stays_a_chance_to_be_relevant_whatever_else_counts() -> None:
    """Failures are penalised, so a page off the goal is worth a half; it is no more likely to be relevant for that."""
    chances = {}
    for error in (0.0, 1.0):
        with Guide.open(":memory:", clock=ManualClock()) as guide:
            guide.define("default", {"goal": {"reward": {"error": error}}, "policy": POLICY})
            guide.seed("default", [A])
            ask(guide)
            tell(guide, fetched(A, *(f"{A}page{n}" for n in range(300)), relevance=0.0))
            for _ in range(20):
                tell(guide, *(fetched(url, relevance=0.0) for url in asked(guide)))
            chances[error] = ask(guide)["assigned_urls"][0]["p"]
    assert chances[0.0] < 0.1
    assert chances[1.0] < 0.25
