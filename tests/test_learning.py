"""A strategy that learns hears of everything that was given, fetched and found, and its opinion counts at once."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crawlguide import Guide
from crawlguide.core import urls
from crawlguide.core.config import Config, CrawlsOptions
from crawlguide.core.definition import CLASSIC, Fixed
from crawlguide.strategies.shared.composition import Composition, Top
from crawlguide.testing import ManualClock
from tests.support import CRAWL, asked, fetched, running, store_of, tell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.core.tables import F64, U64
    from crawlguide.core.types import Ask, Batch, Lesson

A = "https://a.org/"
PLUG = "acme_listener"


class Listener:
    """Writes down what it hears; URLs it was told to like are worth 1, the others 0."""

    version = "listener-1"

    def __init__(self, goal: Any) -> None:
        self.goal, self.liked = goal, set[int]()
        self.lessons, self.batches = list["Lesson"](), list["Batch"]()

    def predict(self, batch: Batch) -> F64:
        return np.array([float(one in self.liked) for one in batch.id.tolist()])

    def assigned(self, batch: Batch, ask: Ask) -> None:
        self.batches.append(batch)

    def learn(self, lesson: Lesson) -> U64 | None:
        self.lessons.append(lesson)
        return np.array(sorted(self.liked), np.uint64) if self.liked else None

    def like(self, *liked: str) -> None:
        self.liked |= {urls.identity(url) for url in liked}


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[Listener]:
    """The listeners that were built, newest last."""
    built: list[Listener] = []
    plug: Any = ModuleType(PLUG)

    class Options(Fixed, frozen=True):
        kind: str = PLUG

    def build(options: Options, seed: int, goal: Any) -> Composition:
        built.append(Listener(goal))
        return Composition(Top(), built[-1], CLASSIC)

    plug.Options, plug.build = Options, build
    monkeypatch.setitem(sys.modules, PLUG, plug)
    return built


@pytest.fixture
def guide(heard: list[Listener]) -> Iterator[Guide]:
    config = Config(crawls=CrawlsOptions(plugins=(PLUG,)))
    with Guide.open(":memory:", clock=ManualClock(), config=config) as opened:
        policy = {"default_delay_s": 0, "max_per_host": 0}
        opened.define("default", {"strategy": {"kind": PLUG}, "policy": policy, "goal": {"topic": "music"}})
        yield opened


def test_a_strategy_is_built_with_the_goal_of_its_crawl(guide: Guide, heard: list[Listener]) -> None:
    assert heard[-1].goal.topic == "music"


def test_seeds_are_a_lesson_without_fetches(guide: Guide, heard: list[Listener]) -> None:
    guide.seed("default", [A, A + "b"])
    (lesson,) = heard[-1].lessons
    assert len(lesson.fetches) == 0
    assert lesson.links.url.tolist() == [A, A + "b"]
    assert lesson.links.parent.tolist() == [-1, -1]
    assert lesson.fresh.tolist() == [True, True]


def test_what_was_given_is_heard_as_it_was_decided(guide: Guide, heard: list[Listener]) -> None:
    guide.seed("default", [A + "1", A + "2"])
    heard[-1].like(A + "2")
    given = asked(guide)
    (batch,) = heard[-1].batches
    assert batch.url.tolist() == given == [A + "2", A + "1"]
    assert batch.value.tolist() == [1.0, 0.0]


def test_an_answer_that_gives_nothing_is_not_heard(guide: Guide, heard: list[Listener]) -> None:
    assert asked(guide) == []
    assert heard[-1].batches == []


def test_a_tell_is_heard_with_texts_relevance_and_links(guide: Guide, heard: list[Listener]) -> None:
    guide.seed("default", [A])
    asked(guide)
    out = [{"url": "b", "anchor": "two", "position": 7}, {"url": A, "anchor": "self"}, {"url": "b", "anchor": "again"}]
    tell(guide, fetched(A, relevance=0.25, title="T", text="words", outlinks=out))
    lesson = heard[-1].lessons[-1]
    assert lesson.fetches.url.tolist() == [A]
    assert (lesson.title.tolist(), lesson.text.tolist()) == (["T"], ["words"])
    assert lesson.fetches.relevance.tolist() == [0.25]
    assert lesson.links.url.tolist() == [A + "b", A + "b"]
    assert lesson.links.anchor.tolist() == ["two", "again"]
    assert lesson.links.position.tolist() == [7, 2]
    assert lesson.fresh.tolist() == [True, False]


def test_links_keep_their_page_when_other_fetches_are_refused(guide: Guide, heard: list[Listener]) -> None:
    told = {"fetch_time": "2025-11-03T14:18:02Z"}
    tell(guide, fetched(A + "1", **told))
    good = fetched(A + "2", title="two", outlinks=[{"url": A + "3"}])
    tell(guide, fetched(A + "1", title="one", outlinks=[{"url": A + "9"}], **told), fetched("nonsense"), good)
    lesson = heard[-1].lessons[-1]
    assert lesson.fetches.url.tolist() == [A + "2"]
    assert lesson.title.tolist() == ["two"]
    assert lesson.links.url.tolist() == [A + "3"]
    assert lesson.links.parent.tolist() == [0]


def test_late_feedback_is_heard_as_a_reward(guide: Guide, heard: list[Listener]) -> None:
    tell(guide, fetched(A))
    tell(guide, {"url": A, "reward": 0.75})
    fetches = heard[-1].lessons[-1].fetches
    assert (fetches.url.tolist(), fetches.status.tolist(), fetches.reward.tolist()) == ([A], [-1], [0.75])


def test_urls_that_a_lesson_made_better_come_first_from_then_on(guide: Guide, heard: list[Listener]) -> None:
    many = [f"{A}{number}" for number in range(1_000)]
    guide.seed("default", many)
    assert asked(guide, max_urls=1) == [many[0]]
    heard[-1].like(many[990])  # far behind the two hundred that an ask looks at
    assert asked(guide, max_urls=1) == [many[1]]
    tell(guide, fetched(many[0]))
    assert asked(guide, max_urls=1) == [many[990]]


def test_one_tell_ranks_no_more_than_two_thousand_urls_besides_its_own(guide: Guide, heard: list[Listener]) -> None:
    many = [f"{A}{number}" for number in range(5_000)]
    guide.seed("default", many)
    heard[-1].like(*many)
    tell(guide, fetched("https://b.org/"))
    above, _ = guide._run(store_of(guide).count_above(CRAWL, 0.5, 0))
    assert above == 2_000


def test_a_strategy_that_does_not_learn_has_no_learner(guide: Guide) -> None:
    guide.define("plain", {"strategy": {"kind": "relational"}})
    found = [running(guide, name).learner is None for name in ("default", "plain")]
    assert found == [False, True]
