"""The classics fetch in the order they are named after."""

from __future__ import annotations

import random
from collections import deque

import pytest

from crawlguide import Guide
from crawlguide.testing import ManualClock
from tests.guide.common import UNPACED, A, pages
from tests.support import asked, fetched, tell


def web(size: int, seed: int) -> dict[str, list[str]]:
    """A small web of one host: every page links to some others."""
    chance = random.Random(seed)
    names = pages(size)
    return {name: chance.sample(names, chance.randrange(1, 6)) for name in names}


def walked(guide: Guide, kind: str, links: dict[str, list[str]], at_once: int = 1) -> list[str]:
    """The order in which a crawler visits a web."""
    guide.define("walk", {"policy": UNPACED, "strategy": {"kind": kind}})
    guide.seed("walk", [next(iter(links))])
    order: list[str] = []
    while batch := asked(guide, max_urls=at_once, crawl_id="walk"):
        order += batch
        tell(guide, *(fetched(url, *links[url]) for url in batch), crawl_id="walk")
    return order


def by_queue(links: dict[str, list[str]]) -> list[str]:
    start = next(iter(links))
    waiting, known, order = deque([start]), {start}, []
    while waiting:
        order.append(waiting.popleft())
        new = [link for link in dict.fromkeys(links[order[-1]]) if link not in known]
        waiting.extend(new)
        known.update(new)
    return order


def by_stack(links: dict[str, list[str]]) -> list[str]:
    start = next(iter(links))
    waiting, known, order = [start], {start}, []
    while waiting:
        order.append(waiting.pop())
        new = [link for link in dict.fromkeys(links[order[-1]]) if link not in known]
        waiting.extend(new)
        known.update(new)
    return order


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("at_once", [1, 7])
def test_breadth_first_is_a_queue(guide: Guide, seed: int, at_once: int) -> None:
    links = web(120, seed)
    assert walked(guide, "breadth-first", links, at_once) == by_queue(links)


@pytest.mark.parametrize("seed", range(3))
def test_depth_first_is_a_stack(guide: Guide, seed: int) -> None:
    links = web(120, seed)
    assert walked(guide, "depth-first", links) == by_stack(links)


def random_order(seed: int) -> list[str]:
    with Guide.open(":memory:", clock=ManualClock(), seed=seed) as guide:
        return walked(guide, "random", web(60, 0))


def test_random_is_the_same_for_the_same_seed() -> None:
    assert random_order(1) == random_order(1)


def test_random_is_another_for_another_seed() -> None:
    assert random_order(1) != random_order(2)


def test_random_is_neither_first_nor_last_discovered() -> None:
    order = random_order(1)
    assert order not in (by_queue(web(60, 0)), by_stack(web(60, 0)))


@pytest.mark.parametrize("kind", ["layered", "best-first", "relational", "breadth-first", "depth-first", "random"])
def test_every_strategy_visits_the_whole_web_once(guide: Guide, kind: str) -> None:
    links = web(120, 1)
    assert sorted(walked(guide, kind, links)) == sorted(by_queue(links))


def test_best_first_follows_the_links_of_the_most_relevant_page(guide: Guide) -> None:
    guide.define("default", {"policy": UNPACED, "strategy": {"kind": "best-first"}})
    tell(guide, *(fetched(f"{A}from{n}", f"{A}to{n}", relevance=n / 10) for n in (3, 9, 1, 6)))
    assert asked(guide) == [f"{A}to{n}" for n in (9, 6, 3, 1)]


def test_a_new_strategy_orders_what_is_already_waiting(guide: Guide) -> None:
    guide.define("default", {"policy": UNPACED, "strategy": {"kind": "breadth-first"}})
    guide.seed("default", list(pages(5)))
    guide.define("default", {"policy": UNPACED, "strategy": {"kind": "depth-first"}})
    assert asked(guide) == pages(5)[::-1]
