"""What strategies with arms share: the queues of arms, the records of URLs, and how links are read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from crawlguide.core.definition import Goal
from crawlguide.core.notebook import Notebook
from crawlguide.strategies.arms.arm_queues import CROWDED, ArmQueues
from crawlguide.strategies.arms.link_features import Scan
from crawlguide.strategies.arms.records import ARM, URL, WAITING
from crawlguide.strategies.shared.learning import RecordTable

ACTIVE = 4


def waiting(keys: list[float], arms: list[int]) -> np.ndarray:
    urls = np.zeros(len(keys), URL)
    urls["id"], urls["key"], urls["arm"], urls["state"] = np.arange(len(keys)) + 7, keys, arms, WAITING
    return urls


@settings(max_examples=60, deadline=None)
@given(some.lists(some.tuples(some.integers(1, 10**6), some.integers(0, 2)), min_size=1, max_size=120, unique=True))
def test_the_best_of_every_arm_are_active_and_neither_too_few_nor_too_many(rows: list[tuple[int, int]]) -> None:
    urls = waiting([key / 10**6 for key, _ in rows], [arm for _, arm in rows])
    arms, queues = np.zeros(3, ARM), ArmQueues(ACTIVE)
    queues.load(urls, 3)
    every, still = np.arange(3), np.zeros(3, np.bool_)
    queues.set_floors(arms, every, still)
    for arm in range(3):
        mine = urls[urls["arm"] == arm]
        active = np.count_nonzero(mine["key"] >= arms["floor"][arm])
        assert min(len(mine), ACTIVE // 2) <= active < CROWDED * ACTIVE
        queues.remove(np.flatnonzero((urls["arm"] == arm) & (urls["key"] >= arms["floor"][arm])))
    found = queues.set_floors(arms, every, still)  # the active ones are gone: the next ones are to be ranked
    for arm in range(3):
        left = queues.sizes[arm]
        assert np.count_nonzero(urls["arm"][found] == arm) == min(left, ACTIVE)


def test_the_active_urls_of_an_arm_whose_value_changed_are_ranked_again() -> None:
    urls, arms, queues = waiting([0.1 * number for number in range(10)], [0] * 10), np.zeros(1, ARM), ArmQueues(ACTIVE)
    arms["floor"] = 0.55
    queues.load(urls, 1)
    assert sorted(queues.set_floors(arms, np.array([0]), np.array([True])).tolist()) == [6, 7, 8, 9]
    assert queues.set_floors(arms, np.array([0]), np.array([False])).tolist() == []


def test_records_are_found_again_when_the_sheet_is_opened_again() -> None:
    notebook = Notebook()
    kind = np.dtype([("id", np.uint64), ("n", np.int64)])
    first = RecordTable(notebook.sheet("urls", kind))
    ids = np.array([5, 2**63 + 1, 5, 9], np.uint64)
    rows, new = first.claim(ids)
    assert (rows.tolist(), new.tolist()) == ([0, 1, 0, 2], [True, True, False, True])
    again = RecordTable(notebook.sheet("urls", kind))
    assert again.find(np.array([9, 8, 5], np.uint64)).tolist() == [2, -1, 0]
    assert again.claim(np.array([8, 9], np.uint64))[0].tolist() == [3, 2]


def test_links_are_read_for_words_folders_and_queries() -> None:
    scan = Scan(Goal(topic="Jazz and the Blues"))
    urls = ["https://a.org/", "https://a.org/music/JAZZ-2/x?y=/", "https://a.org/x"]
    share, folders, query = scan.read(urls, ["", "rhythm\nand blues", "Ünicode jazzy"])
    assert share.tolist() == [0.0, 1.0, 0.5]
    assert folders.tolist() == [0, 2, 0]
    assert query.tolist() == [0, 1, 0]


@pytest.mark.parametrize("goal", [Goal(), Goal(topic="the")])
def test_without_words_no_link_has_any(goal: Goal) -> None:
    assert Scan(goal).share(["https://a.org/the"], ["the"]).tolist() == [0.0]
