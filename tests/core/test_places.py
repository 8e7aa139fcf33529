"""Records by key: found again, bounded, and the same after they grew or were read anew."""

from __future__ import annotations

import numpy as np

from crawlguide.core.lossy_table import FEWEST, LossyTable
from crawlguide.core.notebook import Notebook

KIND = np.dtype([("key", np.uint64), ("worth", np.float64)])


def keys(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(numbers, np.uint64)


def write(places: LossyTable, claimed: np.ndarray[tuple[int], np.dtype[np.uint64]], *worth: float) -> None:
    there = places.claim(claimed)
    places.rows["worth"][there] = worth


def scattered(count: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.random.default_rng(7).integers(1, 2**63, count).astype(np.uint64)


def test_nothing_is_known_at_first() -> None:
    assert LossyTable(KIND).find(keys(1, 2)).tolist() == [-1, -1]
    assert LossyTable(KIND).claim(keys()).tolist() == []


def test_what_was_claimed_is_found_with_what_was_written() -> None:
    places = LossyTable(KIND)
    write(places, keys(5, 6), 0.5, 0.25)
    assert places.rows["worth"][places.find(keys(6, 5))].tolist() == [0.25, 0.5]
    assert places.claim_one(5)[1]
    assert not places.claim_one(7)[1]


def test_of_two_keys_with_one_place_the_newer_stays_and_begins_with_nothing() -> None:
    places = LossyTable(KIND)
    write(places, keys(1), 1.0)
    places.claim(keys(1 + FEWEST))
    assert places.find(keys(1)).tolist() == [-1]
    assert places.rows["worth"][places.find(keys(1 + FEWEST))].tolist() == [0.0]


def test_it_grows_and_forgets_hardly_anything_on_the_way() -> None:
    places, many = LossyTable(KIND), scattered(3_000)
    for key in many.tolist():
        place, _ = places.claim_one(key)
        places.rows["worth"][place] = key % 97
    found = places.find(many)
    known = found >= 0
    assert known.mean() > 0.85
    assert (places.rows["worth"][found[known]] == many[known] % 97).all()


def test_it_never_has_more_places_than_it_may() -> None:
    places = LossyTable(KIND, most=4_096)
    places.claim(scattered(50_000))
    assert places.sheet.used == 4_096


def test_another_that_reads_the_same_sheet_knows_the_same() -> None:
    notebook = Notebook()
    first = LossyTable(KIND, notebook.sheet("some", KIND))
    write(first, keys(5), 0.5)
    again = LossyTable(KIND, notebook.sheet("some", KIND))
    assert again.rows["worth"][again.find(keys(5))].tolist() == [0.5]
