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
