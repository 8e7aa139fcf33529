"""Tables of columns: rows are taken from all of them at once; and the column arithmetic that stages share."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlguide.core.columns import among, changed, distinct, first_of_each, numbered, rank_within, texts, within
from crawlguide.core.tables import BESIDE, F64, I64, Fact, Table, Text, rows_of
from crawlguide.core.types import Ask, Budget, Crawl

RECORD = np.dtype([("small", np.uint8), ("wide", np.float64), ("whole", np.int32)])


@dataclass(frozen=True)
class Shelf(Table):
    """A table with a column of each kind."""

    number: I64
    name: Text
    facts: F64
    label: str = field(metadata=BESIDE)

    small = Fact(0, "a column in the block")
    wide = Fact(1, "another one")


def shelf(rows: int) -> Shelf:
    facts = np.stack([np.arange(rows) % 256.0, np.arange(rows) / 2])
    return Shelf(np.arange(rows), texts(f"name {row}" for row in range(rows)), facts, "top")


def records(rows: int) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    found = np.zeros(rows, RECORD)
    found["small"], found["wide"], found["whole"] = np.arange(rows) % 256, np.arange(rows) / 2, -np.arange(rows)
    return found


def test_rows_are_taken_in_the_order_asked_for() -> None:
    assert shelf(5).take(np.array([3, 0, 3])).number.tolist() == [3, 0, 3]


def test_a_mask_takes_the_rows_where_it_is_true() -> None:
    assert shelf(4).take(np.array([True, False, False, True])).number.tolist() == [0, 3]


def test_text_columns_go_with_their_rows() -> None:
    assert shelf(5).take(np.array([4, 2])).name.tolist() == ["name 4", "name 2"]


@pytest.mark.parametrize("rows", [[], [2], [4, 4, 0], [1, 3]])
def test_the_block_goes_with_its_rows(rows: list[int]) -> None:
    wanted = np.array(rows, np.intp)
    assert shelf(5).take(wanted).facts.tolist() == shelf(5).facts[:, wanted].tolist()


@pytest.mark.parametrize("mask", [[False] * 4, [True] * 4, [False, True, True, False]])
def test_the_block_goes_with_a_mask(mask: list[bool]) -> None:
    assert shelf(4).take(np.array(mask)).facts.tolist() == shelf(4).facts[:, np.array(mask)].tolist()


def test_a_column_of_the_block_reads_like_any_other() -> None:
    assert shelf(5).take(np.array([3, 1])).wide.tolist() == [1.5, 0.5]


def test_a_column_of_the_block_is_attached_like_any_other() -> None:
    before = shelf(2)
    after = before.attach(wide=np.array([7.0, 8.0]))
    assert (before.wide.tolist(), after.wide.tolist()) == ([0.0, 0.5], [7.0, 8.0])
    assert after.small.tolist() == before.small.tolist()


def test_what_belongs_to_the_whole_table_stays() -> None:
    assert shelf(5).take(np.array([1])).label == "top"


def test_taking_rows_leaves_the_table_as_it_was() -> None:
    table = shelf(3)
    table.take(np.array([2, 1]))
    assert table.number.tolist() == [0, 1, 2]


def test_taken_columns_can_change_without_changing_the_table() -> None:
    table = shelf(3)
    table.take(np.array([0, 1, 2])).wide[:] = 99.0
    assert table.wide.tolist() == [0.0, 0.5, 1.0]


def test_attaching_replaces_one_column_and_keeps_the_others() -> None:
    changed = shelf(2).attach(number=np.array([7, 8]))
    assert (changed.number.tolist(), changed.name.tolist()) == ([7, 8], ["name 0", "name 1"])


@settings(deadline=None)
@given(st.lists(st.integers(0, 19), max_size=50))
def test_rows_of_records_are_the_same_as_those_of_numpy(rows: list[int]) -> None:
    found, wanted = records(20), np.array(rows, np.intp)
    assert rows_of(found, wanted).tolist() == found[wanted].tolist()


def test_numpy_does_not_look_inside_a_column_of_texts() -> None:
    assert texts([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert texts([[1, 2], [3, 4]]).shape == (2,)


def test_the_rank_within_a_group_counts_earlier_rows() -> None:
    assert rank_within(np.array([7, 7, 9, 7])).tolist() == [0, 1, 0, 2]


@settings(deadline=None)
@given(st.lists(st.integers(0, 30), max_size=200))
def test_ranks_are_those_of_a_plain_count(groups: list[int]) -> None:
    column = np.array(groups, np.int64)
    wanted = [int(np.count_nonzero(column[:row] == column[row])) for row in range(len(column))]
    assert rank_within(column).tolist() == wanted


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, 2**64 - 1)), max_size=200))
def test_equal_ids_get_one_number_in_the_order_in_which_they_come(ids: list[int]) -> None:
    numbers, first = numbered(np.array(ids, np.uint64))
    each = list(dict.fromkeys(ids))
    assert numbers.tolist() == [each.index(one) for one in ids]
    assert first.tolist() == [ids.index(one) for one in each]


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, 2**64 - 1)), max_size=200))
def test_distinct_ids_are_those_that_numpy_finds(ids: list[int]) -> None:
    column = np.array(ids, np.uint64)
    assert distinct(column).tolist() == np.unique(column).tolist()
    assert column.tolist() == ids


def test_rows_are_within_a_table_from_the_first_to_the_last() -> None:
    assert within(np.array([0, 4, 2]), 5)
    assert within(np.zeros(0, np.int64), 0)
    assert not within(np.array([0, 5]), 5)
    assert not within(np.array([-1, 0]), 5)
    assert within(np.array([9, 1, 9, 2])[1::2].astype(np.int32), 3)


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, 2**64 - 1)), max_size=200))
def test_the_first_of_each_is_where_numpy_finds_it(ids: list[int]) -> None:
    column = np.array(ids, np.uint64)
    wanted = np.zeros(len(column), np.bool_)
    wanted[np.unique(column, return_index=True)[1]] = True
    assert first_of_each(column).tolist() == wanted.tolist()


@settings(deadline=None)
@given(
    st.lists(st.one_of(st.integers(0, 5), st.integers(0, 2**64 - 1)), max_size=50),
    st.lists(st.integers(0, 9), max_size=50),
)
def test_ids_are_among_others_where_numpy_says_so(ids: list[int], wanted: list[int]) -> None:
    column, few = np.array(ids, np.uint64), np.array(wanted, np.uint64)
    assert among(column, few).tolist() == np.isin(column, few).tolist()


def test_numbers_have_changed_from_a_share_of_themselves_on() -> None:
    ids, before = np.arange(5, dtype=np.uint64), np.array([1.0, 1.0, 1.0, 0.0, 0.0])
    found, now = changed(ids, np.array([1.0, 1.2, 0.8, 0.01, 0.0]), before, 0.1)
    assert (found.tolist(), now.tolist()) == ([2, 3], [0.8, 0.01])


def test_ids_that_meet_in_one_slot_of_a_table_are_still_told_apart() -> None:
    ids = np.arange(100, dtype=np.uint64) * np.uint64(1 << 20)
    assert first_of_each(np.concatenate([ids, ids])).tolist() == [True] * 100 + [False] * 100
    assert among(ids, ids[::2].copy()).tolist() == [True, False] * 50


def test_an_ask_is_limited_to_fewer_urls_and_never_to_more() -> None:
    ask = Ask(Crawl("default", "default"), "c-1", 0.0, Budget(30, max_bytes=7))
    assert ask.limited(10).budget == Budget(10, max_bytes=7)
    assert ask.limited(40).budget == ask.budget
