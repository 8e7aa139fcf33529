"""The bonus of `layered` for hosts with few fetches, and that links whose score fell make room within one ask."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawlguide.guide.ask import gathering
from crawlguide.strategies.layered import exploration
from crawlguide.strategies.layered.records import LINK, PLACE
from tests.strategies.alone import learner, tables
from tests.strategies.lessons import told
from tests.strategies.site import opened
from tests.support import ask, batch, fetched, tell

stands: Any = gathering.stands
spread_over_hosts: Any = exploration.spread_over_hosts  # kernels have no annotations
DIGGING, OTHER = "https://dig.example/", "https://other.example/"


def places_of(*hosts: int) -> Any:
    return np.zeros(max(hosts) + 1, PLACE)


def changes(value: list[float], bonus: list[float], hosts: list[int], wanted: int, places: Any) -> Any:
    """By how much the explore value of each link changes when so many are chosen."""
    links, change = np.zeros(len(hosts), LINK), np.zeros(len(hosts))
    links["places"][:, 0], links["levels"] = hosts, 1
    known = tables(links=links, places=places)
    spread_over_hosts(np.arange(len(hosts)), np.array(value), np.array(bonus), known, wanted, change)
    return change


def order(value: list[float], bonus: list[float], hosts: list[int], wanted: int) -> list[int]:
    change = changes(value, bonus, hosts, wanted, places_of(*hosts))
    return [int(row) for row in np.argsort(-(np.array(value) + change), kind="stable")]


def test_the_bonus_of_a_host_shrinks_when_one_of_its_links_is_chosen() -> None:
    value, bonus = [0.5, 0.49, 0.48, 0.47], [0.4, 0.4, 0.4, 0.4]
    assert order(value, bonus, [0, 0, 0, 1], wanted=2)[:2] == [0, 3]


def test_without_a_bonus_the_highest_values_are_taken() -> None:
    assert order([0.5, 0.49, 0.48, 0.4], [0.0, 0.0, 0.0, 0.0], [0, 0, 0, 1], wanted=3)[:3] == [0, 1, 2]


def test_the_bonus_shrinks_less_where_more_was_fetched() -> None:
    places = places_of(0, 1)
    places["alive"] = 99, 3
    change = changes([0.5] * 4, [1.0] * 4, [0, 0, 1, 1], 2, places)  # one of each host is chosen
    assert 0.0 > change[1] > change[3]


def test_fetches_without_an_answer_take_no_bonus_from_the_rest_of_a_host() -> None:
    places = places_of(0, 1)
    places["fetched"] = 99, 0
    change = changes([0.5] * 4, [1.0] * 4, [0, 0, 1, 1], 2, places)
    assert 0.0 > change[1] == change[3]


def fetches(guide: Any, count: int) -> list[str]:
    """So many fetches, all without a reward."""
    fetches: list[str] = []
    while len(fetches) < count:
        urls = [one["url"] for one in ask(guide, max_urls=5)["assigned_urls"]]
        tell(guide, *(fetched(url, relevance=0.0) for url in urls))
        fetches += urls
    return fetches


def crawled_on(without: list[str]) -> list[str]:
    """What is fetched after a host that paid runs dry, beside one whose first pages had no reward."""
    with opened({"kind": "layered", "without": without}, goal={"topic": "pottery"}) as guide:
        tell(guide, fetched(DIGGING, *(f"{DIGGING}{n}" for n in range(400)), relevance=1.0))
        tell(guide, fetched(OTHER, *(f"{OTHER}{n}" for n in range(40)), relevance=0.0))
        tell(guide, *(fetched(f"{OTHER}{n}", relevance=0.0) for n in range(8)))
        tell(guide, *(fetched(f"{DIGGING}{n}", relevance=1.0) for n in range(30)))
        return fetches(guide, 240)


def test_a_host_that_began_badly_is_tried_again_when_the_best_one_is_dry() -> None:
    exploring, greedy = crawled_on([]), crawled_on(["hopes"])
    assert sum(url.startswith(OTHER) for url in exploring) > sum(url.startswith(OTHER) for url in greedy)


def bonuses(urls: list[str], dry: int, *without: str) -> list[float]:
    """The exploration bonus of links in a crawl that paid, and then did not for a while."""
    found = learner("", "bonus", *without)
    good, bad = [f"{DIGGING}a/{n}" for n in range(60)], [f"{DIGGING}b/{n}" for n in range(dry)]
    found.learn(told(fetched(DIGGING, *good, *bad, *urls, relevance=1.0)))
    found.learn(told(*(fetched(url, relevance=1.0) for url in good)))
    found.learn(told(*(fetched(url, relevance=0.0) for url in bad)))
    return [float(one) for one in found.exploration_bonus(batch(urls))]


def test_the_bonus_grows_when_the_hit_rate_falls_below_its_peak() -> None:
    new = [f"{OTHER}new"]
    assert bonuses(new, 100)[0] > 1.2 * bonuses(new, 0)[0] > 0.0
    assert bonuses(new, 100, "losses")[0] < bonuses(new, 0, "losses")[0]


def test_the_peak_is_forgotten_in_a_long_decline() -> None:
    new = [f"{OTHER}new"]
    after_400, after_4_000 = (bonuses(new, dry)[0] for dry in (400, 4_000))
    assert after_400 > 2.0 * after_4_000 > 0.0


def test_the_bonus_has_a_bound() -> None:
    found, new = learner("pottery", "bonus"), f"{OTHER}pottery"
    found.learn(told({**fetched(DIGGING), "relevance": 1.0, "outlinks": [{"url": new, "anchor": "pottery"}]}))
    crawl = found.memory.crawl.rows
    crawl["best"], crawl["good"], crawl["tried"], crawl["hits"], crawl["fetched"] = 1.0, 0.0, 100.0, 500.0, 1_000
    (bonus,) = found.exploration_bonus(batch([new]))
    assert 0.2 < bonus < exploration.MOST_HOPE


def test_the_bonus_is_larger_in_a_folder_where_nothing_was_fetched() -> None:
    tried, other = bonuses([f"{DIGGING}b/x", f"{DIGGING}c/x"], 20)
    assert other > 5 * tried > 0.0


def test_what_is_found_stands_only_if_the_best_are_worth_what_waits_behind() -> None:
    thought = np.linspace(0.9, 0.5, 200)
    assert stands(thought, thought, 10)
    assert not stands(thought / 10, thought, 10)
    assert stands(np.where(np.arange(200) < 10, 0.9, 0.0), thought, 10)
    assert not stands(np.where(np.arange(200) < 9, 0.9, 0.0), thought, 10)


def test_one_ask_looks_past_all_that_has_sunk() -> None:
    """Six hundred links wait by what they were worth while their host paid; one of another host is worth more."""
    with opened({"kind": "layered", "without": ["hopes"]}, goal={"topic": "pottery"}) as guide:
        tell(guide, fetched(DIGGING, *(f"{DIGGING}a/{n}" for n in range(700)), relevance=1.0))
        tell(guide, *(fetched(f"{DIGGING}a/{n}", relevance=1.0) for n in range(40)))
        tell(guide, fetched(OTHER, f"{OTHER}pottery/clay", relevance=1.0))
        tell(guide, *(fetched(f"{DIGGING}a/{n}", relevance=0.0) for n in range(40, 160)))
        assert ask(guide, max_urls=1)["assigned_urls"][0]["url"] == f"{OTHER}pottery/clay"
