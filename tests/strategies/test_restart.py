"""A guide that is closed and opened again in the middle of a crawl goes on as if nothing had been."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crawlguide import Guide
from crawlguide.testing import ManualClock
from tests.strategies.site import HOME, crawled, opened, web

if TYPE_CHECKING:
    from pathlib import Path

STRATEGIES: dict[str, dict[str, Any]] = {
    "groups": {"kind": "groups"},
    "faithful": {"kind": "groups", "faithful": True},
    "thompson": {"kind": "bandit"},
    "linucb": {"kind": "bandit", "algorithm": "linucb"},
    "ucb": {"kind": "ucb"},
    "scorer": {"kind": "scorer"},
    "opic": {"kind": "opic"},
    "pagerank": {"kind": "pagerank"},
    "layered": {"kind": "layered"},
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_same_urls_follow_with_a_restart_and_without(name: str, tmp_path: Path) -> None:
    with opened(STRATEGIES[name], tmp_path / "a") as guide:
        guide.seed("default", [HOME])
        without = crawled(guide, web(), 120)
        told = guide.stats("default")["crawls"]["default"]["learner"]
    with opened(STRATEGIES[name], tmp_path / "b") as guide:
        guide.seed("default", [HOME])
        before = crawled(guide, web(), 60)
    with Guide.open(tmp_path / "b", clock=ManualClock(1_700_000_000.0), seed=1) as guide:
        after = crawled(guide, web(), 120 - len(before))
        assert before + after == without
        assert guide.stats("default")["crawls"]["default"]["learner"] == pytest.approx(told)


# found by attacking what is kept


def told(guide: Guide, *fetches: dict[str, Any]) -> None:
    guide.tell({"mcp_version": "2025-11", "crawler_id": "c", "fetches": list(fetches)})


def answers(guide: Guide) -> list[tuple[str, float, float]]:
    answer = guide.ask({"mcp_version": "2025-11", "crawler_id": "c", "budget": {"max_urls": 9}})
    assert not answer["metadata"].get("degraded")
    return [(one["url"], one["score"], one["p"]) for one in answer["assigned_urls"]]


FREE = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "traps": False}


def test_a_lesson_without_links_is_learned_when_the_table_of_links_is_full() -> None:
    with Guide.open(":memory:", clock=ManualClock(), seed=1) as guide:
        guide.define("default", {"strategy": {"kind": "layered", "most_urls": 10_000}, "policy": FREE})
        for number in range(12):
            links = [{"url": f"https://h{number}.org/a/{link}"} for link in range(900)]
            told(guide, {"url": f"https://h{number}.org/", "status": 200, "relevance": 0.2, "outlinks": links})
            told(guide, {"url": f"https://h{number}.org/leaf", "status": 200, "relevance": 1.0})
        assert answers(guide)
        assert guide.stats("default")["crawls"]["default"]["learner"]["examples"] == 24


def test_a_reward_corrected_late_is_kept(tmp_path: Path) -> None:
    after = []
    for reopens in (False, True):
        clock = ManualClock()
        folder = tmp_path / str(reopens)
        guide = Guide.open(folder, clock=clock, seed=2)
        guide.define("default", {"policy": FREE})
        link = {"outlinks": [{"url": "https://x.org/"}]}
        told(guide, {"url": "https://h.org/", "status": 200, "relevance": 0.1, **link})
        told(guide, {"url": "https://a.org/", "status": 200, "relevance": 0.0, **link})
        told(guide, {"url": "https://a.org/", "reward": 1.0})
        if reopens:
            guide.close()
            guide = Guide.open(folder, clock=clock, seed=2)
        after.append(answers(guide))
        guide.close()
    assert after[0] == after[1]


def test_domains_of_tres_are_told_apart_after_a_restart(tmp_path: Path) -> None:
    def fetched_of_each() -> list[float]:
        active = next(iter(guide._guide._guide.crawls.known.values()))
        domains = active.strategy.guarded.parts[0].predictor.tables.domains  # type: ignore[attr-defined]
        counts: list[float] = domains.rows["fetched"][: domains.used].tolist()
        return counts

    clock = ManualClock()
    guide = Guide.open(tmp_path, clock=clock, seed=1)
    guide.define("default", {"strategy": {"kind": "tres"}, "policy": FREE})
    guide.seed("default", [f"https://s{number}.org/" for number in range(6)])
    guide.ask({"mcp_version": "2025-11", "crawler_id": "c", "budget": {"max_urls": 2}})
    guide.close()
    with Guide.open(tmp_path, clock=clock, seed=1) as guide:
        told(guide, *({"url": f"https://s{number}.org/", "status": 200, "relevance": 1.0} for number in range(6)))
        assert fetched_of_each() == [1.0] * 6
