"""A bounded hash table of records: found again, overwritten, grown, and read anew from its sheet."""

from __future__ import annotations

import numpy as np

from crawlguide.core.lossy_table import FIRST_SLOTS, LossyTable
from crawlguide.core.notebook import Notebook

KIND = np.dtype([("key", np.uint64), ("worth", np.float64)])


def keys(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(numbers, np.uint64)


def write(table: LossyTable, its_keys: np.ndarray[tuple[int], np.dtype[np.uint64]], *worth: float) -> None:
    slots = table.claim(its_keys)
    table.rows["worth"][slots] = worth


def scattered(count: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.random.default_rng(7).integers(1, 2**63, count).astype(np.uint64)


def test_an_empty_table_holds_no_key() -> None:
    assert LossyTable(KIND).find(keys(1, 2)).tolist() == [-1, -1]
    assert LossyTable(KIND).claim(keys()).tolist() == []


def test_what_was_claimed_is_found_with_what_was_written() -> None:
    table = LossyTable(KIND)
    write(table, keys(5, 6), 0.5, 0.25)
    assert table.rows["worth"][table.find(keys(6, 5))].tolist() == [0.25, 0.5]
    assert table.claim_one(5)[1]
    assert not table.claim_one(7)[1]


def test_of_two_keys_with_one_slot_the_newer_overwrites_the_older() -> None:
    table = LossyTable(KIND)
    write(table, keys(1), 1.0)
    table.claim(keys(1 + FIRST_SLOTS))
    assert table.find(keys(1)).tolist() == [-1]
    assert table.rows["worth"][table.find(keys(1 + FIRST_SLOTS))].tolist() == [0.0]


def test_growing_loses_hardly_any_key() -> None:
    table, many = LossyTable(KIND), scattered(3_000)
    for key in many.tolist():
        slot, _ = table.claim_one(key)
        table.rows["worth"][slot] = key % 97
    found = table.find(many)
    known = found >= 0
    assert known.mean() > 0.85
    assert (table.rows["worth"][found[known]] == many[known] % 97).all()


def test_it_never_grows_beyond_its_bound() -> None:
    table = LossyTable(KIND, most=4_096)
    table.claim(scattered(50_000))
    assert table.sheet.used == 4_096


def test_another_that_reads_the_same_sheet_knows_the_same() -> None:
    notebook = Notebook()
    first = LossyTable(KIND, notebook.sheet("some", KIND))
    write(first, keys(5), 0.5)
    again = LossyTable(KIND, notebook.sheet("some", KIND))
    assert again.rows["worth"][again.find(keys(5))].tolist() == [0.5]
