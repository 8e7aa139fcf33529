"""How often asks look again: as far as was saved up, and on the mean no more than was earned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawlguide import Guide
from crawlguide.core.notebook import Notebook
from crawlguide.core.types import Crawl
from crawlguide.guide.ask.gathering import EARNED, FARTHEST, SAVED, RegatherBudget
from crawlguide.testing import ManualClock
from tests.strategies.site import opened
from tests.support import ask, fetched, tell

if TYPE_CHECKING:
    from pathlib import Path

DIGGING, OTHER = "https://dig.example/", "https://other.example/"
BETTER = f"{OTHER}pottery/clay"
STRATEGY, GOAL = {"kind": "layered", "without": ["draws", "hopes"]}, {"topic": "pottery"}


def spent_by(looks: RegatherBudget, asks: int) -> int:
    """How often so many asks look, each as often as it may."""
    total = 0
    for _ in range(asks):
        now = looks.left
        looks.spend(now)
        total += now
    return total


def test_some_asks_may_look_far_and_the_next_ones_pay_for_it() -> None:
    looks = RegatherBudget()
    assert spent_by(looks, 8) == 8 * FARTHEST
    assert spent_by(looks, 100) < 100 * EARNED + SAVED - 7 * (FARTHEST - EARNED)
    assert looks.left <= 2
    for _ in range(int(SAVED / (EARNED - 1))):
        looks.spend(1)
    assert looks.left == FARTHEST


def test_on_the_mean_an_ask_looks_no_more_than_it_earns() -> None:
    assert spent_by(RegatherBudget(), 1_001) == SAVED + 1_000 * EARNED


def test_savings_are_kept_and_taken_over() -> None:
    notebook, first, second, third = Notebook(), RegatherBudget(), RegatherBudget(), RegatherBudget()
    first.remember(notebook)
    first.spend(SAVED)
    second.remember(notebook)
    third.inherit(second)
    assert second.left == third.left == int(EARNED)
    second.inherit(RegatherBudget())
    assert second.left == int(EARNED)


def sinking(guide: Guide) -> None:
    """Thousands of links wait by what they were worth while their host paid; one of another host is worth more."""
    for part in "abc":
        tell(guide, fetched(f"{DIGGING}{part}", *(f"{DIGGING}{part}/{n}" for n in range(1_900)), relevance=1.0))
        tell(guide, *(fetched(f"{DIGGING}{part}/{n}", relevance=0.6) for n in range(40)))
    tell(guide, *(fetched(f"{OTHER}{n}", relevance=1.0) for n in range(8)))  # it is known to answer
    tell(guide, fetched(OTHER, BETTER, relevance=1.0))
    for part in "abc":
        tell(guide, *(fetched(f"{DIGGING}{part}/{n}", relevance=0.0) for n in range(40, 160)))


def given(guide: Guide, times: int) -> list[str]:
    return [str(ask(guide, max_urls=1)["assigned_urls"][0]["url"]) for _ in range(times)]


def looks_of(guide: Any) -> RegatherBudget:
    found: RegatherBudget = guide._guide._guide.crawls.known[Crawl("default", "default")].regathers
    return found


def test_where_no_look_finds_what_stands_the_best_of_all_counts() -> None:
    """More has sunk than one ask looks through, and what is worth most was seen by the first look."""
    with opened(STRATEGY, goal=GOAL) as guide:
        sinking(guide)
        assert given(guide, 1) == [BETTER]
        assert looks_of(guide).left == FARTHEST
        looks_of(guide).spend(SAVED - 2 * FARTHEST)
        given(guide, 3)
        assert looks_of(guide).left < FARTHEST


def test_a_restart_gives_no_looks_back(tmp_path: Path) -> None:
    with opened(STRATEGY, tmp_path, goal=GOAL) as guide:
        sinking(guide)
        looks_of(guide).spend(SAVED)
        before = given(guide, 1)
    with Guide.open(tmp_path, clock=ManualClock(1_700_000_000.0), seed=1) as guide:
        assert before != given(guide, 1)
        assert looks_of(guide).left <= 2
