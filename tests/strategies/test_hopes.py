"""What `layered` hopes of hosts that are little known, and what sinks makes room within one ask."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawlguide.guide.ask import gathering
from crawlguide.strategies.layered import host_bonus
from crawlguide.strategies.layered.records import LINK, PLACE
from tests.strategies.alone import learner
from tests.strategies.lessons import told
from tests.strategies.site import opened
from tests.support import ask, batch, fetched, tell

spread: Any = host_bonus.spread  # kernels have no annotations
stands: Any = gathering.stands
DIGGING, OTHER = "https://dig.example/", "https://other.example/"


def links_of(*hosts: int) -> tuple[Any, Any]:
    links, places = np.zeros(len(hosts), LINK), np.zeros(max(hosts) + 1, PLACE)
    links["places"][:, 0], links["levels"] = hosts, 1
    return links, places


def order(wish: list[float], hope: list[float], hosts: list[int], wanted: int) -> list[int]:
    links, places = links_of(*hosts)
    less = np.zeros(len(wish))
    spread(np.arange(len(wish)), np.array(wish), np.array(hope), links, places, wanted, less)
    return [int(row) for row in np.argsort(-(np.array(wish) + less), kind="stable")]


def test_less_is_hoped_of_a_host_when_one_of_its_links_is_chosen() -> None:
    wish, hope = [0.5, 0.49, 0.48, 0.47], [0.4, 0.4, 0.4, 0.4]
    assert order(wish, hope, [0, 0, 0, 1], wanted=2)[:2] == [0, 3]


def test_chances_without_hope_are_taken_as_they_are() -> None:
    assert order([0.5, 0.49, 0.48, 0.4], [0.0, 0.0, 0.0, 0.0], [0, 0, 0, 1], wanted=3)[:3] == [0, 1, 2]


def test_of_equal_hopes_less_is_lost_where_more_was_fetched() -> None:
    links, places = links_of(0, 0, 1, 1)
    places["alive"] = 99, 3
    less = np.zeros(4)
    spread(np.arange(4), np.full(4, 0.5), np.ones(4), links, places, 2, less)  # one of each host is chosen
    assert 0.0 > less[1] > less[3]


def test_what_did_not_answer_takes_no_hope_from_the_rest_of_a_host() -> None:
    links, places = links_of(0, 0, 1, 1)
    places["fetched"], less = (99, 0), np.zeros(4)
    spread(np.arange(4), np.full(4, 0.5), np.ones(4), links, places, 2, less)
    assert 0.0 > less[1] == less[3]


def fetches(guide: Any, count: int) -> list[str]:
    """Nothing of it pays."""
    given: list[str] = []
    while len(given) < count:
        urls = [one["url"] for one in ask(guide, max_urls=5)["assigned_urls"]]
        tell(guide, *(fetched(url, relevance=0.0) for url in urls))
        given += urls
    return given


def dug(without: list[str]) -> list[str]:
    """A host that paid and is dry now, and one whose first pages were worth nothing: what is fetched next."""
    with opened({"kind": "layered", "without": [*without, "draws"]}, goal={"topic": "pottery"}) as guide:
        tell(guide, fetched(DIGGING, *(f"{DIGGING}{n}" for n in range(400)), relevance=1.0))
        tell(guide, fetched(OTHER, *(f"{OTHER}{n}" for n in range(40)), relevance=0.0))
        tell(guide, *(fetched(f"{OTHER}{n}", relevance=0.0) for n in range(8)))
        tell(guide, *(fetched(f"{DIGGING}{n}", relevance=1.0) for n in range(30)))
        return fetches(guide, 240)


def test_a_host_that_began_badly_is_tried_again_when_the_best_one_is_dry() -> None:
    hoping, hopeless = dug([]), dug(["hopes"])
    assert sum(url.startswith(OTHER) for url in hoping) > sum(url.startswith(OTHER) for url in hopeless)


def wished(urls: list[str], dry: int, *without: str) -> list[float]:
    """What is added to the chance of links, in a crawl that paid and then did not for a while."""
    found = learner("", "draws", "bonus", "leads", *without)
    good, bad = [f"{DIGGING}a/{n}" for n in range(60)], [f"{DIGGING}b/{n}" for n in range(dry)]
    found.learn(told(fetched(DIGGING, *good, *bad, *urls, relevance=1.0)))
    found.learn(told(*(fetched(url, relevance=1.0) for url in good)))
    found.learn(told(*(fetched(url, relevance=0.0) for url in bad)))
    return [float(one) for one in found.exploration_bonus(batch(urls))]


def test_more_is_hoped_for_when_the_crawl_pays_less_than_at_its_best() -> None:
    new = [f"{OTHER}new"]
    assert wished(new, 100)[0] > 1.2 * wished(new, 0)[0] > 0.0
    assert wished(new, 100, "losses")[0] < wished(new, 0, "losses")[0]


def test_more_is_hoped_of_a_folder_where_nothing_was_fetched() -> None:
    tried, other = wished([f"{DIGGING}b/x", f"{DIGGING}c/x"], 20)
    assert other > 5 * tried > 0.0


def test_what_is_found_stands_only_if_the_best_are_worth_what_waits_behind() -> None:
    thought = np.linspace(0.9, 0.5, 200)
    assert stands(thought, thought, 10)
    assert not stands(thought / 10, thought, 10)
    assert stands(np.where(np.arange(200) < 10, 0.9, 0.0), thought, 10)
    assert not stands(np.where(np.arange(200) < 9, 0.9, 0.0), thought, 10)


def test_one_ask_looks_past_all_that_has_sunk() -> None:
    """Six hundred links wait by what they were worth while their host paid; one of another host is worth more."""
    with opened({"kind": "layered", "without": ["draws", "hopes"]}, goal={"topic": "pottery"}) as guide:
        tell(guide, fetched(DIGGING, *(f"{DIGGING}a/{n}" for n in range(700)), relevance=1.0))
        tell(guide, *(fetched(f"{DIGGING}a/{n}", relevance=1.0) for n in range(40)))
        tell(guide, fetched(OTHER, f"{OTHER}pottery/clay", relevance=1.0))
        tell(guide, *(fetched(f"{DIGGING}a/{n}", relevance=0.0) for n in range(40, 160)))
        assert ask(guide, max_urls=1)["assigned_urls"][0]["url"] == f"{OTHER}pottery/clay"
