"""How often asks look again: as far as was saved up, and on the mean no more than was earned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawlguide import Guide
from crawlguide.core.notebook import Notebook
from crawlguide.core.types import Crawl
from crawlguide.guide.looking import EARNED, FARTHEST, SAVED, Looks
from crawlguide.testing import ManualClock
from tests.strategies.site import opened
from tests.support import ask, fetched, tell

if TYPE_CHECKING:
    from pathlib import Path

DIGGING, OTHER = "https://dig.example/", "https://other.example/"
BETTER = f"{OTHER}pottery/clay"


def spent_by(looks: Looks, asks: int) -> int:
    """How often so many asks look, each as often as it may."""
    total = 0
    for _ in range(asks):
        now = looks.left
        looks.spend(now)
        total += now
    return total


def test_some_asks_may_look_far_and_the_next_ones_pay_for_it() -> None:
    looks = Looks()
    assert looks.left == FARTHEST
    assert spent_by(looks, 8) == 8 * FARTHEST
    assert spent_by(looks, 100) < 101 * EARNED + SAVED - 8 * (FARTHEST - EARNED)
    assert looks.left == EARNED
    for _ in range(SAVED):
        looks.spend(1)
    assert looks.left == FARTHEST


def test_on_the_mean_an_ask_looks_no_more_than_it_earns() -> None:
    assert spent_by(Looks(), 1_000) == SAVED + 999 * EARNED


def test_savings_are_kept_and_taken_over() -> None:
    notebook, first, second, third = Notebook(), Looks(), Looks(), Looks()
    first.remember(notebook)
    first.spend(SAVED)
    second.remember(notebook)
    third.inherit(second)
    assert second.left == third.left == EARNED
    second.inherit(Looks())
    assert second.left == EARNED


def sinking(guide: Guide) -> None:
    """Thousands of links wait by what they were worth while their host paid; one of another host is worth more.

    And no looks are left.
    """
    inside: Any = guide
    inside._guide._guide.crawls.known[Crawl("default", "default")].looks.spend(SAVED)
    for part in "abc":
        tell(guide, fetched(f"{DIGGING}{part}", *(f"{DIGGING}{part}/{n}" for n in range(1_900)), relevance=1.0))
        tell(guide, *(fetched(f"{DIGGING}{part}/{n}", relevance=1.0) for n in range(40)))
    tell(guide, fetched(OTHER, BETTER, relevance=1.0))
    for part in "abc":
        tell(guide, *(fetched(f"{DIGGING}{part}/{n}", relevance=0.0) for n in range(40, 160)))


def given(guide: Guide, times: int) -> list[str]:
    return [str(ask(guide, max_urls=1)["assigned_urls"][0]["url"]) for _ in range(times)]


def test_a_crawl_that_has_spent_its_looks_looks_on_in_later_asks(tmp_path: Path) -> None:
    """Also after a restart, which gives nothing back."""
    strategy, goal = {"kind": "layered", "without": ["draws", "hopes"]}, {"topic": "pottery"}
    with opened(strategy, goal=goal) as guide:
        sinking(guide)
        without = given(guide, 30)
    assert 1 < without.index(BETTER) < 30
    with opened(strategy, tmp_path, goal=goal) as guide:
        sinking(guide)
        before = given(guide, 1)
    with Guide.open(tmp_path, clock=ManualClock(1_700_000_000.0), seed=1) as guide:
        assert before + given(guide, 29) == without
