"""What crawlers say when they ask, and hosts that turn them away: each alone changes what is given first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from crawlguide.core import urls
from crawlguide.core.definition import Goal
from crawlguide.core.notebook import Notebook
from crawlguide.strategies.layered.ask_signals import MOST_SIGNALS
from crawlguide.strategies.layered.columns import NAMES
from crawlguide.strategies.layered.exploration import TRAITS
from crawlguide.strategies.layered.learner import Layered
from crawlguide.strategies.layered.records import WEIGHT
from tests.strategies import lessons
from tests.strategies.site import POLICY, opened
from tests.strategies.test_layered import learner_of
from tests.support import ask, asked, batch, fetched, question, tell

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from crawlguide import Guide
    from crawlguide.testing import ManualClock

ALONE: dict[str, Any] = {"kind": "layered", "without": ["exploration"]}
HOSTS = ("https://a.com/", "https://b.com/", "https://c.com/")


def scores(guide: Guide, **context: Any) -> dict[str, float]:
    """By host, of what is given out; all of it goes back."""
    given = ask(guide, max_urls=200, **context)["assigned_urls"]
    tell(guide, *({"url": one["url"], "error": "released"} for one in given))
    found: dict[str, list[float]] = {}
    for one in given:
        found.setdefault(urls.queue(one["url"]), []).append(one["terms"]["relevance"])
    return {host: float(np.mean(values)) for host, values in found.items()}


def alike(guide: Guide, *hosts: str) -> None:
    """Of each host one page was fetched, and more are known."""
    guide.seed("default", list(hosts))
    ask(guide)
    for host in hosts:
        tell(guide, fetched(host, *(f"{host}{n}" for n in range(5)), relevance=0.0))


def change(*contexts: dict[str, Any], hosts: Sequence[str] = HOSTS) -> dict[str, float]:
    """By how much the scores of hosts change with what these asks say, all else being equal."""
    found = []
    said: Sequence[dict[str, Any]]
    for said in ([{} for _ in contexts], contexts):
        with opened(ALONE) as guide:
            alike(guide, *hosts)
            for context in said:
                scores(guide, **context)
            found.append(scores(guide))
    return {host: score - found[0][host] for host, score in found[1].items()}


# historical_yield


def test_a_domain_that_yielded_much_is_preferred_to_one_that_yielded_little() -> None:
    much = {"seed_urls": [HOSTS[1]], "historical_yield": {"visited": 100, "new_pages": 90}}
    little = {"seed_urls": [HOSTS[2]], "historical_yield": {"visited": 100, "new_pages": 10}}
    changed = change(much, little)
    assert changed["b.com"] > 0.0 == changed["a.com"] > changed["c.com"]


def test_the_yield_is_that_of_the_domain_named_by_its_hash_with_all_its_hosts() -> None:
    hosts = ("https://www.a.com/", "https://b.com/", "https://x.y.a.com/")
    poor = {"visited": 100, "new_pages": 1}
    changed = change({"domain_hash": urls.domain_hash("a.com"), "historical_yield": poor}, hosts=hosts)
    assert changed["www.a.com"] < 0.0 > changed["x.y.a.com"]
    assert changed["b.com"] == 0.0


def test_without_a_focus_the_yield_is_that_of_what_was_just_fetched() -> None:
    found = []
    for new in (95, 5):
        with opened(ALONE) as guide:
            alike(guide, *HOSTS)
            history = [fetched(f"{HOSTS[0]}9", relevance=0.0)]
            scores(guide, recent_history=history, historical_yield={"visited": 100, "new_pages": new})
            found.append(scores(guide))
    assert found[0]["a.com"] > found[1]["a.com"]
    assert found[0]["b.com"] == found[1]["b.com"]


@pytest.mark.parametrize("said", [(0, 0), (0, 50), (10, 10_000), (1e15, 1e15), (5, 0)])
def test_whatever_yield_is_told_scores_stay_numbers(said: tuple[float, float]) -> None:
    with opened(ALONE) as guide:
        alike(guide, *HOSTS)
        visited, new = said
        context = {"seed_urls": [HOSTS[1]], "historical_yield": {"visited": visited, "new_pages": new}}
        assert all(0.0 <= score <= 1.0 for score in scores(guide, **context).values())


# hosts that turn us away


@pytest.mark.parametrize("refusal", [{"status": 403}, {"status": 429}, {"status": None, "error": "blocked"}])
def test_a_host_that_turns_us_away_is_worth_less_than_one_that_fails_otherwise(refusal: dict[str, Any]) -> None:
    found = []
    for outcome in ({"status": 404}, refusal):
        with opened(ALONE, policy=POLICY | {"max_retries": 0, "unreliable_threshold": 1}) as guide:
            alike(guide, *HOSTS)
            tell(guide, *({"url": f"{HOSTS[1]}{number}"} | outcome for number in range(3)))
            cast("ManualClock", guide._guide._guide.clock).advance(86_400.0)  # by then it may be asked again
            found.append(scores(guide))
    assert found[0]["b.com"] > found[1]["b.com"]
    assert found[0]["a.com"] == found[1]["a.com"]


# authority


def test_pages_pass_on_what_they_hold_and_nothing_comes_from_nowhere() -> None:
    learner = Layered(Goal(), 1)
    learner.learn(lessons.seeds(*HOSTS[:2]))
    first = [{"url": f"{HOSTS[2]}{n}"} for n in (0, 1, 2, 3, 1)]  # two links to the same are one
    learner.learn(lessons.told({"url": HOSTS[0], "status": 200, "relevance": 1.0, "outlinks": first}))
    learner.learn(lessons.told({"url": f"{HOSTS[2]}0", "status": 200, "outlinks": [{"url": "/new"}]}))  # no reward
    rows = learner.memory.find(lessons.ids(*HOSTS[:2], f"{HOSTS[2]}1", f"{HOSTS[2]}new"))
    assert learner.memory.links.rows["cash"][rows].tolist() == [0.0, 0.5, 0.125, 0.125]


# what was written by another version


@pytest.mark.parametrize("sheet", ["urls", "places", "pages"])
def test_records_of_another_version_are_forgotten_together_and_weights_stay(sheet: str) -> None:
    """Else numbers of rows in one sheet would lead nowhere in another."""
    notebook, other = Notebook(), np.dtype([("id", np.uint64), ("other", np.float32)])
    before = Layered(Goal(), 1)
    before.remember(notebook)
    for learner in (before, Layered(Goal(), 1)):
        if learner is not before:
            notebook.sheet(sheet, other).fit(50)
            learner.remember(notebook)
            assert not learner.memory.links.used
            assert (learner.memory.weights.rows["weight"] == before.memory.weights.rows["weight"]).all()
        learner.learn(lessons.seeds(*HOSTS))
        links = [{"url": f"/{number}"} for number in range(40)]
        learner.learn(lessons.told(*({"url": h, "status": 200, "relevance": 1.0, "outlinks": links} for h in HOSTS)))
        found = batch([f"{HOSTS[0]}1", f"{HOSTS[1]}2"])
        assert np.isfinite(learner.predict(found)).all()
        learner.draw(question(), 10)
        learner.assigned(found, question())
        learner.learn(lessons.told({"url": f"{HOSTS[0]}1", "status": 200, "relevance": 0.0}))


def test_of_hubs_another_version_knew_less() -> None:
    notebook, learner = Notebook(), Layered(Goal(), 1)
    notebook.sheet("hub", WEIGHT).fit(2)
    learner.remember(notebook)
    assert learner.memory.hub_weights.used == TRAITS
    assert (learner.memory.hub_weights.rows["square"][:TRAITS] == 1.0).all()


def test_a_column_that_is_new_to_a_crawl_begins_with_its_first_weight() -> None:
    notebook, learner = Notebook(), Layered(Goal(), 1)
    learner.remember(notebook)
    learner.memory.weights.rows["weight"][NAMES.index("history")] = 0.0
    learner.memory.weights.rows["weight"][NAMES.index("parents")] = 0.25
    learner.remember(notebook)
    weights = dict(zip(NAMES, learner.memory.weights.rows["weight"].tolist(), strict=False))
    assert (weights["history"], weights["parents"]) == (0.5, 0.25)


# external_features


def pages(count: int) -> list[str]:
    """Nothing in their addresses says which pay."""
    return [f"{HOSTS[0]}{n * 7919 % 10007}" for n in range(count)]


def worth(url: str) -> float:
    return float(int(url.rsplit("/", 1)[1]) % 3 == 0)


def signals(url: str) -> dict[str, Any]:
    """One that tells, on a scale of its own; one that misleads; and one that says nothing."""
    number = int(url.rsplit("/", 1)[1])
    return {"visits": 5_000.0 if worth(url) else 20.0, "spam": 1.0 - worth(url), "noise": number % 10 / 10, "x": None}


def test_numbers_of_callers_have_no_weight_before_anything_was_learned() -> None:
    said = {f"{HOSTS[0]}{n}": {"mine": float(n)} for n in range(5)}
    assert set(change({"external_features": said}).values()) == {0.0}


def test_which_numbers_of_callers_are_good_is_learned() -> None:
    with opened(ALONE) as guide:
        found = pages(400)
        guide.seed("default", [HOSTS[0]])
        ask(guide)
        tell(guide, fetched(HOSTS[0], *found, relevance=0.0))
        said = {url: signals(url) for url in found}
        harvest = []
        for turn in range(20):
            given = asked(guide, max_urls=5, external_features=said if turn < 3 else {})
            tell(guide, *(fetched(url, relevance=worth(url)) for url in given))
            harvest += [worth(url) for url in given]
        without = [worth(url) for url in found[:100]]
        assert np.mean(harvest[50:]) > 0.9 > 2 * np.mean(without)
        told = learner_of(guide).ask_signals
        visits, noise, spam = (
            float(told._signals.records["weight"][told._signal(name)]) for name in ("visits", "noise", "spam")
        )
        assert visits > abs(noise)
        assert spam < -abs(noise)


def test_an_instant_is_a_number_too() -> None:
    with opened(ALONE) as guide:
        found = pages(200)
        guide.seed("default", [HOSTS[0]])
        ask(guide)
        tell(guide, fetched(HOSTS[0], *found, relevance=0.0))
        days = {url: f"2025-{'11' if worth(url) else '02'}-{1 + int(worth(url)):02}T00:00:00Z" for url in found}
        said: dict[str, Any] = {url: {"last_modified": day, "text": "none"} for url, day in days.items()}
        harvest = []
        for turn in range(15):
            given = asked(guide, max_urls=5, external_features=said if turn == 0 else {})
            tell(guide, *(fetched(url, relevance=worth(url)) for url in given))
            harvest += [worth(url) for url in given]
        assert np.mean(harvest[40:]) > 0.8


def test_what_was_told_of_a_url_counts_when_it_is_found_later_and_after_a_restart(tmp_path: Path) -> None:
    found = pages(120)
    with opened(ALONE, tmp_path) as guide:
        guide.seed("default", [HOSTS[0]])
        ask(guide, external_features={url: signals(url) for url in found})
        tell(guide, fetched(HOSTS[0], *found[:60], relevance=0.0))
        for _ in range(8):
            tell(guide, *(fetched(url, relevance=worth(url)) for url in asked(guide, max_urls=5)))
    with opened(ALONE, tmp_path) as guide:
        tell(guide, fetched(f"{HOSTS[0]}list", *found[60:], relevance=0.0))
        given = asked(guide, max_urls=15)
        assert np.mean([worth(url) for url in given]) > 0.9


@pytest.mark.parametrize("value", [1e300, -1e300, 0.0, -5.0, 1e-300])
def test_whatever_numbers_are_told_scores_stay_numbers(value: float) -> None:
    with opened(ALONE) as guide:
        found = pages(40)
        guide.seed("default", [HOSTS[0]])
        ask(guide)
        tell(guide, fetched(HOSTS[0], *found, relevance=0.0))
        said = {url: {"mine": value * worth(url), "other": 1.0} for url in found}
        for _ in range(4):
            given = ask(guide, max_urls=5, external_features=said)["assigned_urls"]
            assert all(0.0 <= one["p"] <= 1.0 for one in given)
            tell(guide, *(fetched(one["url"], relevance=worth(one["url"])) for one in given))


def test_more_names_than_there_is_room_for_are_passed_over() -> None:
    with opened(ALONE) as guide:
        alike(guide, *HOSTS)
        for part in range(3):
            names = {f"{HOSTS[0]}{n}": {f"name {part} {n} {k}": 1.0 for k in range(100)} for n in range(5)}
            assert asked(guide, max_urls=1, external_features=names)
        assert learner_of(guide).ask_signals._signals.sheet.used <= MOST_SIGNALS


def test_a_told_pagerank_counts_as_authority_at_most_in_full() -> None:
    with opened(ALONE, weights={"authority": 1.0}) as guide:
        alike(guide, *HOSTS)
        given = ask(guide, external_features={f"{HOSTS[2]}1": {"pagerank": 40.0}})["assigned_urls"]
        assert given[0]["url"] == f"{HOSTS[2]}1"
        assert given[0]["terms"]["authority"] == 1.0
