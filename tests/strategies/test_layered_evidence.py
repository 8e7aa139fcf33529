"""What `layered` counts and learns, against what can be worked out by hand."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

import numpy as np
import pytest

from crawlguide.core.errors import MalformedRequest
from crawlguide.core.notebook import Notebook
from crawlguide.store.embedded import EmbeddedStore
from crawlguide.store.moves.rank import Quota
from crawlguide.strategies.layered import tuning
from crawlguide.strategies.layered.columns import NAMES, PRIOR
from crawlguide.strategies.layered.evidence import FAR
from crawlguide.strategies.layered.model import FIRST_SQUARE
from crawlguide.strategies.layered.records import COLUMNS, DONE, VISITED, WAITING
from tests.strategies.alone import A, column, learner, link, linked, page, parents, place
from tests.strategies.lessons import ids, seeds, told
from tests.support import CRAWL, NOW, batch, fetched, question

if TYPE_CHECKING:
    from pathlib import Path

PAGES = tuple(f"{A}page/{number}" for number in range(4))
DECAY = tuning.DEFAULTS["decay"]


# evidence


def test_a_page_that_links_here_counts_once() -> None:
    found, target = learner(), A + "target"
    found.learn(seeds(*PAGES))
    assert parents(found, PAGES[0]) == (0, 0, 0)  # a seed stands on no page
    found.learn(told(fetched(PAGES[0], target, target, relevance=1.0)))
    found.learn(told(fetched(PAGES[0], target, relevance=1.0)))
    assert parents(found, target) == (1, 1, 1)
    found.learn(told(fetched(PAGES[1], target, relevance=0.25), fetched(PAGES[2], target, relevance=0.0)))
    one = link(found, target)
    assert parents(found, target) == (3, 1.25, 1)
    assert (one["depth"], one["distance"]) == (1, 1)


def test_what_nobody_had_found_is_near_to_nothing() -> None:
    found = learner()
    found.learn(told(fetched(A, A + "x", relevance=0.0)))
    assert (link(found, A)["distance"], link(found, A + "x")["distance"]) == (FAR, FAR)


def test_pages_and_places_are_paid_and_newer_fetches_count_more() -> None:
    found, children = learner(), [f"{A}x/{number}" for number in range(3)]
    found.learn(told(fetched(PAGES[0], *children, relevance=0.0)))
    found.learn(told(fetched(children[0], relevance=1.0)))
    found.learn(told(fetched(children[1], relevance=0.0)))
    assert page(found, PAGES[0])["good"] == pytest.approx(DECAY)
    assert page(found, PAGES[0])["tried"] == pytest.approx(DECAY + 1.0)
    assert page(found, PAGES[0])["waiting"] == 1
    folder = place(found, children[2], 1)
    assert (folder["fetched"], folder["total"], folder["waiting"]) == (2, 1, 1)
    assert folder["good"] == pytest.approx(DECAY)
    still = learner("", "forgetting")
    still.learn(told(fetched(PAGES[0], *children, relevance=0.0)))
    still.learn(told(fetched(children[0], relevance=1.0), fetched(children[1], relevance=0.0)))
    assert (place(still, children[2], 1)["good"], place(still, children[2], 1)["tried"]) == (1, 2)


def test_neighbours_on_the_page_that_found_a_link_speak_for_it() -> None:
    found = learner()
    found.learn(told(fetched(A, *(f"https://h{number}.org/" for number in range(8)), relevance=0.0)))
    found.learn(told(fetched("https://h1.org/", relevance=1.0)))
    near, beside, far = (column(found, f"https://h{number}.org/", "neighbours") for number in (2, 4, 5))
    assert near > beside > far == 0.0


def test_seeds_are_no_neighbours_of_each_other() -> None:
    found, many = learner(), [f"https://h{number}.org/" for number in range(4)]
    found.learn(seeds(*many))
    found.learn(told(fetched(many[0], relevance=1.0)))
    assert column(found, many[1], "neighbours") == 0.0


def test_a_fetch_counts_once_however_small_its_place() -> None:
    found, many = learner(), [f"{A}x/y/{number}" for number in range(6)]
    found.learn(seeds(*many))
    found.learn(told(*(fetched(url, relevance=1.0) for url in many[:5])))
    crawl, folder = found.memory.crawl.rows[0], place(found, many[5], 2)
    usual = (crawl["good"] + 0.3) / (crawl["tried"] + 6.0)
    paid = (folder["good"] + 3.0 * usual) / (folder["tried"] + 3.0)
    expected = log(paid / (1 - paid)) - log(usual / (1 - usual))
    assert column(found, many[5], "place") == pytest.approx(expected, rel=1e-3)
    assert column(found, many[5], "host") == pytest.approx(expected, rel=1e-3)


def test_what_is_said_of_a_place_is_of_one_that_was_fetched_from() -> None:
    found, inside, beside = learner(), [f"{A}x/y/{number}" for number in range(6)], f"{A}z/w/1"
    found.learn(seeds(*inside, beside))
    found.learn(told(*(fetched(url, relevance=1.0) for url in inside[:5])))
    assert "links of this form paid 100% of the time lately" in found.explain(batch([inside[5]]))
    assert "links around it paid 100% of the time lately" in found.explain(batch([beside]))


def test_what_is_under_way_counts_against_its_place_until_it_is_told() -> None:
    found, many = learner(), [f"{A}x/{number}" for number in range(6)]
    found.learn(seeds(*many))
    found.learn(told(fetched(many[0], relevance=1.0)))
    before = column(found, many[5], "place")
    found.assigned(batch(many[1:4]), question())
    assert place(found, many[5])["pending"] == 3
    assert column(found, many[5], "place") < before
    found.learn(told(*({"url": url, "error": "released"} for url in many[1:4])))
    assert (place(found, many[5])["pending"], place(found, many[5])["waiting"]) == (0, 5)
    assert column(found, many[5], "place") == pytest.approx(before)
    assert link(found, many[1])["state"] == WAITING
    assert place(found, many[5])["fetched"] == 1


def test_who_fails_is_learned_although_nobody_says_what_it_is_worth() -> None:
    found = learner()
    found.learn(seeds(*PAGES))
    found.assigned(batch(PAGES[:2]), question())
    found.learn(told({"url": PAGES[0], "error": "timeout"}, {"url": PAGES[1], "status": 404}))
    host = place(found, PAGES[2])
    assert (host["fetched"], host["alive"], host["pending"]) == (2, 0, 0)
    assert host["failed"] == pytest.approx(1.0 + DECAY)
    assert column(found, PAGES[2], "answers") < -0.5


def answering(*seed_urls: str) -> float:
    """How likely a host answers that was found on a seed, after six such hosts did not."""
    found, others = learner(), [f"https://{name}.example/" for name in "abcdefg"]
    found.learn(seeds(A, *seed_urls))
    found.learn(told(fetched(A, *others, relevance=0.0), *(fetched(url, relevance=0.0) for url in seed_urls)))
    found.learn(told(*({"url": url, "error": "timeout"} for url in others[:-1])))
    return column(found, others[-1], "answers")


def test_that_seeds_answer_says_nothing_of_hosts_that_are_found() -> None:
    assert answering(*(f"https://seed-{number}.example/" for number in range(20))) == answering()
    assert answering() < log(0.2)


def test_old_errors_are_forgotten_but_never_all_of_them() -> None:
    found, urls = learner(), [f"{A}{number}" for number in range(1_200)]
    found.learn(seeds(*urls))
    found.learn(told(*(fetched(url, relevance=float(number % 2)) for number, url in enumerate(urls[:600]))))
    crawl = found.memory.crawl.rows
    assert FIRST_SQUARE < crawl["offset_square"][0] < 40.0  # all of them together would be above a hundred
    found.learn(told(*(fetched(url, relevance=0.0) for url in urls[600:])))
    assert FIRST_SQUARE <= crawl["offset_square"][0] < FIRST_SQUARE + 0.5
    assert crawl["offset"][0] > -5.0


def test_links_of_a_page_that_nobody_has_judged_yet_are_no_seeds() -> None:
    found, seed, other = learner(), "https://seed.example/", "https://other.example/"
    found.learn(seeds(A, seed))
    found.learn(told(fetched(A, other)))
    wished = found.exploration_bonus(batch([seed, other])) + found.predict(batch([seed, other]))
    assert wished[0] >= tuning.DEFAULTS["seed_value"] > wished[1]


def test_what_failed_may_pay_at_another_time() -> None:
    found = learner()
    found.learn(seeds(*PAGES))
    found.learn(told({"url": PAGES[0], "error": "timeout"}))
    found.learn(told(fetched(PAGES[0], A + "x", relevance=1.0)))
    host = place(found, PAGES[0])
    assert (host["fetched"], host["alive"], host["total"]) == (2, 1, 1)
    assert parents(found, A + "x") == (1, 1, 1)
    found.learn(told(fetched(PAGES[0], relevance=1.0)))  # but a page that is fetched again is no other page
    assert place(found, PAGES[0])["fetched"] == 2


def test_a_page_that_nobody_judged_teaches_nothing_until_somebody_does() -> None:
    found = learner()
    found.learn(seeds(*PAGES))
    found.assigned(batch(PAGES[:1]), question())
    found.learn(told(fetched(PAGES[0], A + "x")))
    assert link(found, PAGES[0])["state"] == VISITED
    assert (place(found, PAGES[0])["fetched"], place(found, PAGES[0])["pending"]) == (0, 0)
    assert found.stats()["examples"] == 0
    assert parents(found, A + "x") == (0, 0, 0)  # it speaks neither for nor against its links
    found.learn(told({"url": PAGES[0], "reward": 0.75}))
    assert (link(found, PAGES[0])["state"], link(found, PAGES[0])["label"]) == (DONE, 0.75)
    assert (place(found, PAGES[0])["fetched"], place(found, PAGES[0])["total"]) == (1, 0.75)
    assert found.stats()["examples"] == 1


def test_links_of_a_page_have_it_as_a_parent_when_its_reward_comes_late() -> None:
    found, known, new = learner(), A + "known", A + "new"
    found.learn(told(fetched(PAGES[3], known, relevance=0.0)))
    found.learn(told({"url": PAGES[0], "status": 200, "title": "birds", "outlinks": [linked(known), linked(new)]}))
    assert (link(found, new)["finder"], link(found, new)["depth"]) == (link(found, PAGES[0])["page"], 1)
    assert (parents(found, known), parents(found, new)) == ((1, 0, 0), (0, 0, 0))
    assert column(found, new, "finder") == 0.0
    found.learn(told({"url": PAGES[0], "reward": 1.0}))
    assert (parents(found, known), parents(found, new)) == ((2, 1, 1), (1, 1, 1))
    assert [column(found, url, "near a hit") for url in (known, new)] == [0.5, 0.5]
    assert column(found, new, "finder") == 1.0
    assert page(found, PAGES[0])["found"] == 1


def test_of_many_parents_the_older_ones_are_counted() -> None:
    found, target, many = learner(), A + "target", [f"{A}many/{number}" for number in range(7)]
    for number, url in enumerate(many):
        found.learn(told(fetched(url, target, relevance=float(number < 2))))
    assert parents(found, target) == (7, 2, 1)
    assert link(found, target)["count"] == 3


@pytest.mark.parametrize(
    ("older", "kept"),
    [
        ((0, 0.0, 0.0), (0, 0.0, 0.0)),
        ((2, 0.5, 0.25), (2, 0.5, 0.25)),  # by their mean, since a newer page was better
        ((2, 1.0, 1.0), (2, 1.0, 1.0)),
    ],
)
def test_records_that_counted_all_parents_are_migrated(
    older: tuple[int, float, float], kept: tuple[int, float, float]
) -> None:
    book, found, target = Notebook(), learner(), A + "target"
    found.remember(book)
    found.learn(told(*(fetched(url, target, relevance=0.75) for url in PAGES)))
    row, (count, total, best) = found.memory.find(ids(target)), older
    for name, value in (("count", count + 4), ("sum", total + 3.0), ("best", max(best, 0.75))):
        found.memory.links.rows[name][row] = value
    book.sheet("format", np.dtype(np.int8))  # as if it had not been there
    for _ in range(2):
        found.remember(book)
        assert tuple(link(found, target)[["count", "sum", "best"]]) == kept
    for url in PAGES:
        found.learn(told({"url": url, "reward": 0.0}))
    assert parents(found, target) == (kept[0] + 4, *kept[1:])


async def test_opening_a_memory_writes_nothing(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path, Quota(1_000, 1_000, 1_000))
    await store.crawl_put(CRAWL, b"{}", NOW)
    book, found = await store.notebook(CRAWL), learner()
    found.remember(book)
    found.learn(seeds(*PAGES))
    await store.commit()
    found.remember(book)
    assert not book._dirty  # type: ignore[attr-defined]
    await store.close()


def test_a_late_reward_takes_the_place_of_what_was_said() -> None:
    found, children = learner(), (A + "x", A + "y")
    found.learn(told(fetched(PAGES[0], *children, relevance=0.0)))
    changed = found.learn(told({"url": PAGES[0], "reward": 3.0}))  # no page is worth more than 1
    assert changed is not None
    assert set(changed.tolist()) >= set(ids(*children).tolist())
    assert (link(found, PAGES[0])["label"], page(found, PAGES[0])["label"]) == (1, 1)
    assert [parents(found, url) for url in children] == [(1, 1, 1), (1, 1, 1)]
    assert (place(found, PAGES[0])["total"], place(found, PAGES[0])["fetched"]) == (1, 1)
    found.learn(told({"url": PAGES[0], "reward": 0.0}))
    assert (parents(found, children[0]), place(found, PAGES[0])["good"]) == ((1, 0, 0), 0)


def test_a_late_reward_counts_for_links_found_before_and_for_pages_that_link_to_its_page() -> None:
    found, late, child = learner(), A + "late", A + "child"
    found.learn(told(fetched(PAGES[0], late, child, relevance=0.0)))
    found.learn(told(fetched(late, child, relevance=0.0)))
    assert (page(found, PAGES[0])["good"], parents(found, child)) == (0, (2, 0, 0))
    found.learn(told({"url": late, "reward": 1.0}))
    assert (page(found, PAGES[0])["good"], parents(found, child)) == (1, (2, 1, 1))


@pytest.mark.parametrize("told_at_once", [{}, {"relevance": 0.0}])
def test_a_late_reward_moves_its_page_in_the_profile(told_at_once: dict[str, float]) -> None:
    found, at_once = learner(), learner()
    page_read = {"url": A, "status": 200, "title": "birds", "text": "many birds sing"}
    at_once.learn(told(page_read | {"relevance": 1.0}))
    found.learn(told(page_read | told_at_once))
    assert found.memory.profile.rows["count"][:2].tolist() == [0.0, float(len(told_at_once))]
    found.learn(told({"url": A, "reward": 1.0}))
    assert found.memory.profile.rows["count"][:2].tolist() == [1.0, 0.0]
    assert found.memory.tables().profile == pytest.approx(at_once.memory.tables().profile, abs=1e-5)


# chances


@pytest.mark.parametrize("worth", [0.0, 1.0])
def test_chances_move_towards_what_came_of_them(worth: float) -> None:
    found = learner("", "learning", "exploration", "places", "neighbours")  # the weights stay as they are
    many = [f"https://h{number}.org/" for number in range(100)]
    found.learn(seeds(*many))
    for number in range(0, 90, 10):
        found.learn(told(*(fetched(url, relevance=worth) for url in many[number : number + 10])))
    crawl = found.memory.crawl.rows[0]
    assert (crawl["offset"] > 0) == (worth > 0.5)
    promised = float(found.predict(batch(many[95:96]))[0])
    crawl["offset"], crawl["steepness"] = 0.0, 1.0
    found.memory.generation += 1  # so that it is scored again
    raw = float(found.predict(batch(many[95:96]))[0])
    assert abs(promised - worth) < abs(raw - worth)


def test_words_that_paid_are_learned() -> None:
    found = learner()
    for number in range(15):
        good, bad = f"https://g{number}.org/", f"https://b{number}.org/"
        links = [linked(good, "lovely birds"), linked(bad, "cheap cars")]
        found.learn(told({"url": f"{A}{number}", "status": 200, "relevance": 0.0, "outlinks": links}))
        found.learn(told(fetched(good, relevance=1.0), fetched(bad, relevance=0.0)))
    links = [linked("https://x.org/", "many birds"), linked("https://y.org/", "many cars")]
    found.learn(told({"url": A, "status": 200, "relevance": 0.0, "outlinks": links}))
    birds, cars = found.predict(batch(["https://x.org/", "https://y.org/"]))
    assert birds > 1.5 * cars


def test_hubs_are_learned_by_place() -> None:
    found = learner()
    rich, poor = [[f"{A}{kind}/{number}" for number in range(12)] for kind in ("list", "item")]
    found.learn(told(fetched("https://start.org/", *rich, *poor, relevance=0.0)))
    for number in range(10):
        links = [f"https://h{number}.org/{link}" for link in range(50)]
        found.learn(told(fetched(rich[number], *links, relevance=0.0), fetched(poor[number], relevance=0.0)))
    hub, leaf = found.exploration_bonus(batch([rich[11], poor[11]]))
    assert hub > leaf
    without = learner("", "exploration")
    without.learn(seeds(*rich))
    assert without.exploration_bonus(batch(rich[:2])).tolist() == [0.0, 0.0]


def leading(hits: int, *without: str) -> float:
    """How much more a folder is wished for than a page, where folders lead on and pages do not."""
    found, started = learner("", "bonus", "hopes", *without), "https://start.org/"
    folders, pages = [[f"https://{kind}{n}.org/{kind}{end}" for n in range(9)] for kind, end in (("f", "/"), ("p", ""))]
    good = [f"{started}{number}" for number in range(hits)]
    found.learn(told(fetched(started, *folders, *pages, *good, relevance=0.0)))
    found.learn(told(*(fetched(url, relevance=1.0) for url in good)))
    for number in range(8):
        links = [f"https://h{number}.org/{link}" for link in range(50)]
        found.learn(told(fetched(folders[number], *links, relevance=0.0), fetched(pages[number], relevance=0.0)))
    folder, page = found.exploration_bonus(batch([folders[8], pages[8]]))
    return float(folder - page)


def test_pages_that_lead_on_are_worth_something_until_something_else_is() -> None:
    early, late = (leading(hits) - leading(hits, "leads") for hits in (0, 10))
    assert early > 5 * late > 0.0


def test_of_likely_links_those_of_a_host_with_few_fetches_are_preferred() -> None:
    found, known, little_known = learner("", "hopes", "hubs"), f"{A}b/", "https://b.org/b/"
    found.learn(told(fetched(A, *(f"{known}{number}" for number in range(40)), relevance=1.0)))
    found.learn(told(fetched("https://b.org/", *(f"{little_known}{number}" for number in range(40)), relevance=1.0)))
    found.learn(told(*(fetched(f"{known}{number}", relevance=1.0) for number in range(1, 31))))
    one, other = found.exploration_bonus(batch([f"{little_known}0", f"{known}0"]))
    assert one > 2 * other > 0.0


def test_parts_of_earlier_versions_may_still_be_named() -> None:
    assert tuning.tuned(tuning.GONE) == tuning.tuned([])


def test_links_of_a_page_that_promise_alike_are_taken_from_all_over_it() -> None:
    found, links = learner("", "exploration"), [f"{A}{number}" for number in range(64)]
    found.learn(told(fetched(A, *links, relevance=0.0)))
    worth = found.predict(batch(links)) + found.exploration_bonus(batch(links))
    assert np.argsort(-worth)[:4].tolist() == [0, 32, 16, 48]
    assert np.ptp(worth - found.predict(batch(links))) < 0.0011


def test_a_link_nobody_heard_of_has_the_chance_of_any_page() -> None:
    found = learner()
    assert found.predict(batch([A])) == pytest.approx([0.05])
    assert found.explain(batch([A])) == ["nothing was learned of it yet"]


# parts that can be left out


def test_a_part_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(MalformedRequest, match=r"strategy\.without: expected some of parents, .*'luck'") as refused:
        tuning.tuned(["draws", "yield", "luck"])
    assert refused.value.field == "strategy.without"


@pytest.mark.parametrize("part", tuning.PARTS)
def test_a_part_that_is_left_out_says_nothing(part: str) -> None:
    found = learner("birds", part)
    links = [linked("https://b.org/x/birds", "birds"), linked("https://c.org/", "cars")]
    found.learn(told({"url": A, "status": 200, "relevance": 1.0, "title": "birds", "outlinks": links}))
    found.learn(told(fetched("https://c.org/", "https://b.org/x/birds", relevance=1.0)))
    for name in tuning.PARTS[part][0]:
        assert column(found, "https://b.org/x/birds", name) == 0.0
    for name, number in tuning.PARTS[part][1].items():
        assert found.tuning[name][0] == number
    assert np.isfinite(found.predict(batch(["https://b.org/x/birds"]))).all()


def test_without_a_prior_weights_begin_at_nothing() -> None:
    assert not learner("", "prior").memory.weights.rows["weight"].any()
    assert learner().memory.weights.rows["weight"][: len(NAMES)].tolist() == PRIOR[: len(NAMES)].tolist()


def test_weights_that_learned_much_are_less_in_doubt_and_others_are_not() -> None:
    found = learner()
    before = np.diag(found.memory.covariance.rows["of"][:COLUMNS]).copy()
    found.learn(told(*(fetched(f"{A}{number}", relevance=number % 2) for number in range(40))))
    known = found.memory.covariance.rows["of"][:COLUMNS]
    after = np.diag(known)
    assert 0.0 < after[NAMES.index("always")] < 0.9 * before[NAMES.index("always")]
    assert after[NAMES.index("query")] == before[NAMES.index("query")]  # no URL had one
    assert np.array_equal(known, known.T)


def test_without_learning_nothing_of_it_changes() -> None:
    found = learner("", "learning")
    before = found.memory.weights.rows["weight"].copy()
    found.learn(told(*(fetched(f"{A}{number}", relevance=number % 2) for number in range(40))))
    assert np.array_equal(found.memory.weights.rows["weight"], before)
