"""What `layered` draws, and what it remembers where there is room for so many URLs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core.notebook import Notebook
from crawlguide.strategies.layered import exploration as exploration_kernels
from crawlguide.strategies.layered import tuning
from crawlguide.strategies.layered.columns import PRIOR
from crawlguide.strategies.layered.memory import FORGOTTEN_AT_ONCE, LayeredMemory
from crawlguide.strategies.layered.records import ASSIGNED, CRAWL, HOST, PAGE, PLACE, WAITING
from tests.strategies.alone import A, learner, page, tables
from tests.strategies.lessons import ids, seeds, told
from tests.support import batch, fetched, question

if TYPE_CHECKING:
    from collections.abc import Mapping

exploration: Any = exploration_kernels  # kernels have no annotations: their signatures say more


# arms


def hosts(*rows: Mapping[str, float]) -> tuple[Any, Any]:
    """Hosts on which something waits, each with what it paid."""
    places, named = np.zeros(len(rows), PLACE), np.zeros(len(rows), HOST)
    places["waiting"], named["place"] = 5, np.arange(len(rows))
    for number, row in enumerate(rows):
        for name, value in row.items():
            places[name][number] = value
    return places, named


def hosts_drawn(places: Any, named: Any, crawl: Any, times: int, seed: int = 1) -> list[int]:
    known = tables(crawl=crawl, hosts=named, hosts_used=len(named), places=places)
    return [int(exploration.draw_host(seed, known)) for _ in range(times)]


def drawn(places: Any, named: Any, times: int = 400, seed: int = 1) -> list[int]:
    found = hosts_drawn(places, named, np.zeros(1, CRAWL), times, seed)
    return [found.count(number) for number in range(len(named))]


def test_hosts_that_paid_are_drawn_most_and_others_now_and_then() -> None:
    paid, dry, little = drawn(*hosts(
        {"fetched": 20, "good": 10, "tried": 20}, {"fetched": 20, "tried": 20}, {"fetched": 1, "tried": 1},
    ))  # fmt: skip
    assert paid > 300
    assert little > dry


def test_hosts_that_fail_and_those_on_which_nothing_waits_are_passed_over() -> None:
    well = {"fetched": 10, "good": 5, "tried": 10}
    good, failing, empty = drawn(*hosts(well, well | {"failed": 9.9}, well | {"waiting": 0}))
    assert good > 0.9 * (good + failing)
    assert empty == 0
    assert drawn(*hosts({"waiting": 0}), times=3) == [0]


def test_all_hosts_never_tried_are_one_arm() -> None:
    counts = drawn(*hosts({"fetched": 10, "good": 5, "tried": 10}, *({} for _ in range(50))))
    assert counts[0] > 200
    assert sum(count > 0 for count in counts[1:]) > 5  # any of them is drawn


def test_where_all_hosts_are_dry_a_crawl_draws_none_unless_it_fares_as_badly() -> None:
    places, named = hosts(*({"fetched": 20, "tried": 20} for _ in range(5)))
    crawl = np.zeros(1, CRAWL)
    crawl["fetched"], crawl["luck"] = 100, 0.5
    assert set(hosts_drawn(places, named, crawl, 100)) == {-1}
    crawl["luck"] = 0.0
    assert set(hosts_drawn(places, named, crawl, 100)) > {0, 1, 2, 3, 4}


def test_pages_whose_links_paid_are_drawn_most() -> None:
    pages, crawl = np.zeros(3, PAGE), np.zeros(1, CRAWL)
    pages["waiting"], pages["tried"], pages["good"] = (5, 5, 0), 10, (8, 0, 10)
    known = tables(crawl=crawl, pages=pages, pages_used=3)
    found = [exploration.draw_page(1, known) for _ in range(300)]
    assert found.count(0) > 2 * found.count(1)
    assert found.count(2) == 0


def test_draws_are_the_same_for_the_same_seed_and_others_for_another() -> None:
    asked = []
    for seed in (1, 1, 2):
        found = learner(seed=seed)
        found.learn(seeds(*(f"https://h{number}.org/" for number in range(40))))
        found.learn(told(fetched("https://h0.org/", A + "x", A + "y", relevance=0.0)))
        asked.append([(sorted(one.hosts), one.ids.tolist()) for one in (found.draw(question(), 20) for _ in range(5))])
    assert asked[0] == asked[1] != asked[2]
    assert asked[0][0] != asked[0][1]  # the counter goes on


def test_who_is_drawn_stands_first() -> None:
    found, many = learner(), [f"https://h{number}.org/" for number in range(40)]
    found.learn(seeds(*many))
    assert not found.draw(question(), 40).hosts  # nothing was fetched yet to draw by
    found.learn(told(fetched("https://h0.org/", relevance=0.0)))
    draw = found.draw(question(), 100)
    rows = batch(many)
    mark = found.draw_bonus(rows, replace(question(), draw=draw))
    assert 0 < mark.sum() <= 40
    assert {url.split("/")[2] for url, one in zip(many, mark, strict=True) if one} == draw.hosts
    none = learner("", "draws")
    none.learn(seeds(*many))
    none_drawn = none.draw(question(), 40)
    assert not none_drawn.hosts
    assert not none.draw_bonus(rows, replace(question(), draw=none_drawn)).any()


# memory


def remembered(book: Notebook, most: int) -> LayeredMemory:
    return LayeredMemory(book, tuning.tuned([]), PRIOR, most)


def test_beyond_its_bound_the_oldest_are_forgotten_and_no_more_than_it_takes() -> None:
    book = Notebook()
    memory = remembered(book, 10_000)
    every = np.arange(1, 14_001, dtype=np.uint64)
    memory.claim_places(every[:1])  # where there are URLs there is a host
    memory.claim(every[:10_000])
    assert memory.index.live == 10_000
    memory.claim(every[10_000:10_010])
    assert memory.index.live == 10_010 - FORGOTTEN_AT_ONCE
    assert (memory.find(every[:FORGOTTEN_AT_ONCE]) == -1).all()
    for start in range(10_010, 14_000, 10):
        memory.claim(every[start : start + 10])
    assert memory.index.live == 14_000 - FORGOTTEN_AT_ONCE  # there was room: nothing else was forgotten
    kept = memory.find(every[FORGOTTEN_AT_ONCE:])
    assert len(set(kept.tolist())) == len(kept)
    assert kept.min() >= 0
    assert memory.links.used == 10_000
    again = remembered(book, 10_000)
    assert again.find(every).tolist() == memory.find(every).tolist()
    rows, new = again.claim(every[:3])  # what was forgotten can be known again
    assert new.all()
    assert (again.links.rows["state"][rows] == WAITING).all()


def test_those_under_way_are_not_forgotten() -> None:
    memory = remembered(Notebook(), 5_000)
    every = np.arange(1, 6_001, dtype=np.uint64)
    rows, _ = memory.claim(every[:5_000])
    memory.links.rows["state"][rows[7]] = ASSIGNED
    memory.claim(every[5_000:])
    assert np.flatnonzero(memory.find(every[:100]) >= 0).tolist() == [7]


def test_a_long_crawl_in_little_memory_stays_in_its_senses() -> None:
    found = learner(most=10_000)
    for number in range(30):
        links = [f"https://h{number}.org/{kind}/{link}" for kind in "abc" for link in range(230 + number)]
        found.learn(told(fetched(f"{A}{number}", *links, relevance=number % 2)))
        rows = batch(links[:20])
        assert np.isfinite(found.predict(rows)).all()
        assert np.isfinite(found.exploration_bonus(rows)).all()
        assert 0 < page(found, f"{A}{number}")["found"] <= len(links)
        assert (found.memory.find(ids(*links)) >= 0).all()
        assert found.stats()["urls"] <= 10_000
        found.draw(question(), 10)
    assert found.memory.links.used <= 10_000
    assert np.isfinite(found.memory.hub_weights.rows["weight"]).all()


def test_a_page_fetched_again_has_its_new_links() -> None:
    found = learner()
    found.learn(told(fetched(A, A + "x", relevance=0.0)))
    found.learn(told(fetched("https://b.org/", *(f"https://b.org/{number}" for number in range(50)), relevance=0.0)))
    found.learn(told(fetched(A, A + "x", A + "y", A + "z", relevance=0.0)))
    assert page(found, A)["found"] == 2
