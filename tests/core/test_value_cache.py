"""A bounded cache of one number per id: hits, misses and growth."""

from __future__ import annotations

import numpy as np

from crawlguide.core.value_cache import ValueCache


def ids(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(numbers, np.uint64)


def test_what_was_put_is_a_hit_and_the_rows_of_the_others_are_misses() -> None:
    cache = ValueCache()
    cache.put(ids(7, 8), np.array([0.5, 0.25]))
    values, misses = cache.get(ids(8, 9, 7))
    assert misses.tolist() == [1]
    assert (values[0], values[2]) == (0.25, 0.5)


def test_of_two_ids_with_one_slot_the_newer_overwrites_the_older() -> None:
    cache = ValueCache(most_slots=16)
    cache.put(ids(3), np.array([1.0]))
    cache.put(ids(19), np.array([2.0]))
    assert cache.get(ids(3, 19))[1].tolist() == [0]


def test_no_ids_have_no_values_and_no_misses() -> None:
    values, misses = ValueCache().get(ids())
    assert (len(values), len(misses)) == (0, 0)


def test_it_grows_without_losing_anything_up_to_its_bound() -> None:
    cache, many = ValueCache(most_slots=1 << 14), np.arange(1, 8_001, dtype=np.uint64)
    for some in np.split(many, 80):
        cache.put(some, some.astype(np.float64))
    values, misses = cache.get(many)
    assert not len(misses)
    assert (values == many).all()
    cache.put(np.arange(1 << 15, dtype=np.uint64), np.zeros(1 << 15))
    assert len(cache.slots[0]) == 1 << 14
