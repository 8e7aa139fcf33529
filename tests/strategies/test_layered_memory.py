"""What `layered` remembers where there is room for so many URLs."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawlguide.core.notebook import Notebook, Sheet
from crawlguide.strategies.layered import tuning
from crawlguide.strategies.layered.columns import PRIOR
from crawlguide.strategies.layered.memory import FORGOTTEN_AT_ONCE, LayeredMemory
from crawlguide.strategies.layered.records import ASSIGNED, PARENTS, WAITING
from tests.strategies.alone import A, learner, page
from tests.strategies.lessons import ids, told
from tests.support import batch, fetched, question


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


def test_a_page_fetched_again_has_its_new_links() -> None:
    found = learner()
    found.learn(told(fetched(A, A + "x", relevance=0.0)))
    found.learn(told(fetched("https://b.org/", *(f"https://b.org/{number}" for number in range(50)), relevance=0.0)))
    found.learn(told(fetched(A, A + "x", A + "y", A + "z", relevance=0.0)))
    assert page(found, A)["found"] == 2


class KeptSheet(Sheet):
    """A sheet, and what a store has of it: the records that were marked, as they were at the last commit."""

    def __init__(self, kind: np.dtype[Any]) -> None:
        super().__init__(kind)
        self.kept, self._marked = Sheet(kind), set[int]()

    def changed(self, rows: Any) -> None:
        super().changed(rows)
        self._marked.update(rows.tolist())

    def commit(self) -> None:
        self.kept.fit(self.used)
        self.kept.rows[sorted(self._marked)] = self.rows[sorted(self._marked)]
        self._marked.clear()


class KeptNotebook(Notebook):
    def _blank(self, name: str, kind: np.dtype[Any]) -> Sheet:
        return KeptSheet(kind)


def test_all_that_a_tell_changes_is_kept() -> None:
    """Also of a page that links to one that was fetched, where newer pages of the same tell take its place."""
    found, book, newer = learner("birds"), KeptNotebook(), [f"{A}{number}" for number in range(PARENTS)]
    found.remember(book)
    for lesson in (
        told(fetched(A, f"{A}x", *newer, relevance=1.0)),
        told(fetched("https://b.org/", f"{A}x", relevance=0.0)),
        told(fetched(f"{A}x", relevance=1.0), *(fetched(one, f"{A}x", relevance=0.0) for one in newer)),
    ):
        found.learn(lesson)
        for name, sheet in book.in_use().items():
            assert isinstance(sheet, KeptSheet)
            sheet.commit()
            for field in sheet.kind.names or ():
                kept, now = (one[field][: sheet.used] for one in (sheet.kept.rows, sheet.rows))
                np.testing.assert_array_equal(kept, now, err_msg=f"{name}: {field}")
    assert page(found, "https://b.org/")["good"] == 1.0
