"""Nobody in the lab sees a page, or its label, before the crawl has come to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from crawlguide.core.errors import ModelUnavailable
from crawlguide.core.urls import canonical
from crawlguide.lab import run as running
from crawlguide.lab import synthetic
from crawlguide.lab.budgeted_web import BudgetedWeb, LookAhead
from crawlguide.lab.policies import keyword
from crawlguide.lab.policies._shared import Policy, Ranking
from crawlguide.lab.run import Settings

if TYPE_CHECKING:
    from crawlguide.core.types import Lesson
    from crawlguide.lab.pages import Page, Web

WEB: Web = synthetic.make(3, pages=120, hosts=4, topics=3)
TASK = WEB.tasks()[0]
SEEDS = TASK.seeds.get("portal") or TASK.seeds["near"]


@pytest.fixture
def web() -> BudgetedWeb:
    return BudgetedWeb(WEB, TASK, SEEDS, budget=5)


def unseen(page: Page) -> str:
    """A page of the web that this one does not link to."""
    shown = {canonical(link.url, page.url) for link in page.links} | set(SEEDS)
    return min(WEB.reachable(SEEDS) - shown)


def test_seeds_and_links_of_fetched_pages_may_be_fetched(web: BudgetedWeb) -> None:
    page = web.fetch(SEEDS[0])
    web.fetch(canonical(page.links[0].url, page.url))
    assert web.left == 3


def test_a_page_that_nothing_led_to_is_not_shown(web: BudgetedWeb) -> None:
    with pytest.raises(LookAhead, match="seed or a link of a fetched page"):
        web.fetch(unseen(web.fetch(SEEDS[0])))


def test_what_was_refused_costs_nothing_and_leaves_nothing_behind(web: BudgetedWeb) -> None:
    far = unseen(WEB.fetch(SEEDS[0]))
    with pytest.raises(LookAhead):
        web.fetch(far)
    assert (web.left, web.relevant, web.outcome) == (5, [], [])


def test_no_label_is_told_before_its_page_is_fetched(web: BudgetedWeb) -> None:
    with pytest.raises(LookAhead, match="a page that was fetched"):
        web.label(SEEDS[0])
    web.fetch(SEEDS[0])
    assert web.label(SEEDS[0]) == float(WEB.is_relevant(TASK, SEEDS[0]))


def test_no_fetch_is_made_beyond_the_budget() -> None:
    web = BudgetedWeb(WEB, TASK, SEEDS, budget=1)
    web.fetch(SEEDS[0])
    with pytest.raises(LookAhead, match="at most 1 fetches"):
        web.fetch(SEEDS[1])


def test_the_same_target_counts_once(web: BudgetedWeb) -> None:
    task = next(task for task in WEB.tasks() if "near" in task.seeds)
    near = task.seeds["near"][0]
    again = BudgetedWeb(WEB, task, [near], budget=3)
    again.fetch(near)
    again.fetch(near)
    assert again.relevant == [1, 0]


class Cheat(Ranking):
    """Got hold of the web, and looks at where a link leads before it says what the link is worth."""

    web: BudgetedWeb

    def learn(self, lesson: Lesson) -> None:
        number = self.columns.numbers(lesson.links.id)
        peeked = [len(self.web.fetch(url).links) if parent >= 0 else 0 for url, parent in _links(lesson)]
        self.columns["value"][number] = np.array(peeked, float)


class LabelThief(Ranking):
    """Asks for the labels of what it has only heard of."""

    web: BudgetedWeb

    def learn(self, lesson: Lesson) -> None:
        number = self.columns.numbers(lesson.links.id)
        self.columns["value"][number] = [self.web.label(url) for url in lesson.links.url]


def _links(lesson: Lesson) -> list[tuple[str, int]]:
    return list(zip(lesson.links.url.tolist(), lesson.links.parent.tolist(), strict=True))


@pytest.mark.parametrize("cheat", [Cheat, LabelThief])
def test_a_policy_that_looks_ahead_ends_its_run(cheat: type[Ranking], monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs under the name of an honest one, and is given what no policy is given."""

    class Seen(BudgetedWeb):
        def __init__(self, *given: object) -> None:
            super().__init__(*given)  # type: ignore[arg-type]
            cheat.web = self  # type: ignore[attr-defined]

    monkeypatch.setattr(running, "BudgetedWeb", Seen)
    monkeypatch.setattr(keyword, "build", lambda *_: Policy(cheat()))  # type: ignore[arg-type]
    with pytest.raises(ModelUnavailable, match="raised LookAhead"):
        running.run(WEB, TASK, "keyword", 0, Settings(budget=60))


def test_an_honest_policy_is_never_accused() -> None:
    done = running.run(WEB, TASK, "keyword", 0, Settings(budget=60))
    assert len(done.relevant) == 60
