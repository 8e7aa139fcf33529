"""Numbers that were worked out before."""

from __future__ import annotations

import numpy as np

from crawlguide.core.value_cache import ValueCache


def ids(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(numbers, np.uint64)


def test_what_was_put_is_found_and_the_rest_is_named() -> None:
    recall = ValueCache()
    recall.put(ids(7, 8), np.array([0.5, 0.25]))
    numbers, unknown = recall.find(ids(8, 9, 7))
    assert unknown.tolist() == [1]
    assert (numbers[0], numbers[2]) == (0.25, 0.5)


def test_of_two_that_claim_one_place_the_older_is_forgotten() -> None:
    recall = ValueCache(places=16)
    recall.put(ids(3), np.array([1.0]))
    recall.put(ids(19), np.array([2.0]))
    assert recall.find(ids(3, 19))[1].tolist() == [0]


def test_nothing_is_found_among_nothing() -> None:
    numbers, unknown = ValueCache().find(ids())
    assert (len(numbers), len(unknown)) == (0, 0)


def test_there_is_room_for_more_and_more_and_what_was_known_stays_known() -> None:
    recall, many = ValueCache(places=1 << 14), np.arange(1, 8_001, dtype=np.uint64)
    for some in np.split(many, 80):
        recall.put(some, some.astype(np.float64))
    numbers, unknown = recall.find(many)
    assert not len(unknown)
    assert (numbers == many).all()
    recall.put(np.arange(1 << 15, dtype=np.uint64), np.zeros(1 << 15))
    assert len(recall.table[0]) == 1 << 14  # and no more than that
