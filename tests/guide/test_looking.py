"""How often asks look again: as far as was saved up, and on the mean no more than was earned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide import Guide
from crawlguide.core.notebook import Notebook
from crawlguide.guide.looking import EARNED, SAVED, Looks
from crawlguide.testing import ManualClock
from tests.strategies.site import opened
from tests.support import ask, fetched, tell

if TYPE_CHECKING:
    from pathlib import Path

DIGGING, OTHER = "https://dig.example/", "https://other.example/"
BETTER = f"{OTHER}pottery/clay"


def test_one_ask_may_look_far_and_the_next_ones_pay_for_it() -> None:
    looks = Looks()
    assert looks.left == SAVED
    looks.spend(SAVED)
    assert looks.left == int(EARNED)
    for _ in range(int(SAVED / (EARNED - 1))):
        looks.spend(1)
    assert looks.left == SAVED


def test_on_the_mean_an_ask_looks_no_more_than_it_earns() -> None:
    looks, spent = Looks(), 0
    for _ in range(1_001):
        now = looks.left
        spent += now
        looks.spend(now)
    assert spent == SAVED + 1_000 * EARNED


def test_savings_are_kept_and_taken_over() -> None:
    notebook, first, second, third = Notebook(), Looks(), Looks(), Looks()
    first.remember(notebook)
    first.spend(SAVED)
    second.remember(notebook)
    third.inherit(second)
    assert second.left == third.left == int(EARNED)
    second.inherit(Looks())
    assert second.left == int(EARNED)


def sinking(guide: Guide) -> None:
    """Thousands of links wait by what they were worth while their host paid; one of another host is worth more."""
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
