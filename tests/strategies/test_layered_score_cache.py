"""Scores of links are cached until something is learned, and no longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls
from crawlguide.strategies.layered.scores import CACHED
from tests.strategies.alone import A, learner
from tests.strategies.lessons import ids, seeds, told
from tests.support import batch, fetched, question

if TYPE_CHECKING:
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Batch
    from crawlguide.strategies.layered.learner import Layered

PAGES = [f"{A}part-{number % 3}/{number}" for number in range(40)]


def begun() -> Layered:
    found = learner("parts")
    found.learn(seeds(A))
    found.learn(told(fetched(A, *PAGES, relevance=0.3)))
    return found


def rows(*pages: str) -> Batch:
    return batch(pages, id=ids(*pages))


def said(found: Layered, *pages: str) -> F64:
    look = rows(*pages)
    return np.concatenate([found.predict(look), found.exploration_bonus(look)])


def anew(found: Layered, *pages: str) -> F64:
    found._score_cache[:] = 0
    return said(found, *pages)


def changed(found: Layered) -> bool:
    """Whether links are judged otherwise than before; whatever is the case, what is said must be what holds."""
    before = said(found, *PAGES[20:])
    yield_of_domain = {int(urls.domain_hash("a.org"), 16): (50.0, 49.0)}
    found.draw(question(yields=yield_of_domain), 0)
    after = said(found, *PAGES[20:])
    assert np.array_equal(after, anew(found, *PAGES[20:]))
    return not np.array_equal(before, after)


def test_the_first_of_what_was_looked_at_is_not_looked_at_again_until_something_is_learned() -> None:
    found = begun()
    first = said(found, *PAGES)
    found._score_cache[:] = 0
    found.memory.weights.rows["weight"] += 1.0  # nobody told
    assert np.array_equal(found.predict(rows(*PAGES[:5])), first[:5])
    assert not np.array_equal(found.predict(rows(*PAGES[1:5])), first[1:5])
    found.memory.generation += 1
    assert not np.array_equal(found.predict(rows(*PAGES[1:3])), first[1:3])


def test_links_are_not_judged_twice_while_nothing_is_learned() -> None:
    found = begun()
    first = said(found, *PAGES)
    found.memory.weights.rows["weight"] += 1.0  # nobody told
    assert np.array_equal(said(found, *PAGES[3:5]), first[[3, 4, 43, 44]])
    assert not np.array_equal(anew(found, *PAGES), first)


def test_what_was_said_holds_until_a_page_is_told_or_given_out_or_a_yield_is_named() -> None:
    found = begun()
    for number in range(5):
        before = said(found, *PAGES[20:])
        found.learn(told(fetched(PAGES[number], relevance=float(number % 2))))
        after = said(found, *PAGES[20:])
        assert not np.array_equal(before, after)
        assert np.array_equal(after, anew(found, *PAGES[20:]))
        found.assigned(rows(PAGES[10 + number]), question())
        later = said(found, *PAGES[20:])
        assert not np.array_equal(after, later)
        assert np.array_equal(later, anew(found, *PAGES[20:]))
    assert changed(found)
    assert not changed(found)


def test_what_crawlers_tell_of_a_url_counts_at_once() -> None:
    found, moved = begun(), []
    fetches, waiting = ids(*PAGES[:4]).tolist(), ids(PAGES[30])[0]
    for number, page in enumerate(fetches):
        before = said(found, *PAGES[20:])
        found.draw(question(external={page: {"rank": number % 2}, int(waiting): {"rank": 5.0 - number}}), 0)
        after = said(found, *PAGES[20:])
        assert np.array_equal(after, anew(found, *PAGES[20:]))
        moved.append(not np.array_equal(before, after))
        found.learn(told(fetched(PAGES[number], relevance=float(number % 2))))
    assert moved[-1]


def test_more_links_than_are_remembered_are_judged_all_the_same() -> None:
    found, many = begun(), [f"{A}more/{number}" for number in range(2 * CACHED)]
    found.learn(told(fetched(PAGES[0], *many, relevance=1.0)))
    one_by_one = np.array([found.predict(rows(page))[0] for page in many[:: CACHED // 2]])
    assert np.array_equal(found.predict(rows(*many))[:: CACHED // 2], one_by_one)
