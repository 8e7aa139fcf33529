"""What a store promises of the notebooks that it lends: what strategies write is kept like everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crawlguide.core.errors import NotFound

from .builders import CRAWL

if TYPE_CHECKING:
    from crawlguide.core.notebook import Sheet
    from crawlguide.core.protocols import Store

ARM = np.dtype([("pulls", "<i4"), ("means", "<f4", (3,)), ("name", "S5")], align=True)
OTHER = CRAWL._replace(name="other")


def written(sheet: Sheet, rows: list[int], pulls: int) -> None:
    sheet.fit(max(rows) + 1)
    for row in rows:
        sheet.rows[row] = (pulls, (pulls, row, 0.5), f"n{row}".encode())
    sheet.changed(np.array(rows))


# the contract


async def test_a_notebook_is_lent_with_what_was_written_into_it(store: Store) -> None:
    arms = (await store.notebook(CRAWL)).sheet("arms", ARM)
    assert (arms.used, len(arms.rows)) == (0, 0)
    written(arms, [0, 2], 7)
    await store.commit()
    again = (await store.notebook(CRAWL)).sheet("arms", ARM)
    assert again.rows["pulls"][: again.used].tolist() == [7, 0, 7]


async def test_every_crawl_has_a_notebook_of_its_own_and_takes_it_along(store: Store) -> None:
    await store.crawl_put(OTHER, b"{}", 0.0)
    written((await store.notebook(CRAWL)).sheet("arms", ARM), [0], 7)
    assert (await store.notebook(OTHER)).sheet("arms", ARM).used == 0
    await store.crawl_delete(CRAWL)
    with pytest.raises(NotFound):
        await store.notebook(CRAWL)
    await store.commit()
    await store.crawl_put(CRAWL, b"{}", 0.0)
    assert (await store.notebook(CRAWL)).in_use() == {}


async def test_a_sheet_of_another_kind_begins_empty(store: Store) -> None:
    notebook = await store.notebook(CRAWL)
    written(notebook.sheet("arms", ARM), [5], 7)
    await store.commit()
    numbers = notebook.sheet("arms", np.dtype(np.float64))
    assert numbers.used == 0
    assert notebook.sheet("arms", np.dtype(np.float64)) is numbers
    assert notebook.sheet("arms", ARM).used == 0


async def test_new_records_are_zeros_and_stay_where_they_are_when_a_sheet_grows(store: Store) -> None:
    arms = (await store.notebook(CRAWL)).sheet("arms", ARM)
    written(arms, [0, 1], 3)
    arms.fit(5_000)
    assert arms.used == 5_000
    assert arms.rows["pulls"][:3].tolist() == [3, 3, 0]
    assert not arms.rows["means"][2:].any()


async def test_who_holds_on_to_records_while_a_sheet_grows_sees_them_as_they_were(store: Store) -> None:
    arms = (await store.notebook(CRAWL)).sheet("arms", ARM)
    written(arms, [0, 1], 3)
    held, rows = arms.rows["pulls"], arms.rows
    arms.fit(50_000)
    arms.rows["pulls"][0] = 4
    assert (held[:2].tolist(), rows["pulls"][:2].tolist()) == ([3, 3], [3, 3])
    del held, rows
    arms.fit(500_000)
    assert arms.rows["pulls"][:3].tolist() == [4, 3, 0]
    assert not arms.rows["pulls"][3:].any()


@pytest.mark.parametrize("name", ["", "ninechars", "schön", "a\nb"])
async def test_a_name_that_cannot_be_kept_is_refused(store: Store, name: str) -> None:
    with pytest.raises(ValueError, match="expected a name of 1 to 8"):
        (await store.notebook(CRAWL)).sheet(name, ARM)


@pytest.mark.parametrize("kind", [object, [("a", object)], (np.float32, (3,)), [("a", ARM)], "V0"])
async def test_records_that_cannot_be_kept_are_refused(store: Store, kind: Any) -> None:
    with pytest.raises(ValueError, match="expected numbers, or records of numbers"):
        (await store.notebook(CRAWL)).sheet("arms", np.dtype(kind))


@pytest.mark.parametrize("row", [-1, 3])
async def test_records_that_are_not_there_cannot_have_changed(store: Store, row: int) -> None:
    arms = (await store.notebook(CRAWL)).sheet("arms", ARM)
    arms.fit(3)
    with pytest.raises(IndexError, match="records 0 to 2 are in use"):
        arms.changed(np.array([0, row]))


async def test_a_notebook_begins_with_sheets_of_another(store: Store) -> None:
    await store.crawl_put(OTHER, b"{}", 0.0)
    mine, theirs = await store.notebook(CRAWL), await store.notebook(OTHER)
    written(theirs.sheet("arms", ARM), [0, 3], 7)
    written(theirs.sheet("rows", ARM), [0], 7)
    assert mine.take_over(theirs, ("arms", "none"))
    arms, source = mine.sheet("arms", ARM), theirs.sheet("arms", ARM)
    assert (arms.rows[: arms.used] == source.rows[: source.used]).all()
    assert list(mine.in_use()) == ["arms"]
    arms.rows["pulls"][0] = 1
    assert source.rows["pulls"][0] == 7


async def test_what_was_learned_here_is_not_replaced_by_what_another_has_learned(store: Store) -> None:
    await store.crawl_put(OTHER, b"{}", 0.0)
    mine, theirs = await store.notebook(CRAWL), await store.notebook(OTHER)
    written(theirs.sheet("arms", ARM), [0], 7)
    written(theirs.sheet("words", ARM), [0], 7)
    written(mine.sheet("words", ARM), [0], 1)
    assert not mine.take_over(theirs, ("arms", "words"))
    assert list(mine.in_use()) == ["words"]


async def test_sheets_count_as_memory(store: Store) -> None:
    before = (await store.figures())["columns_bytes"]
    (await store.notebook(CRAWL)).sheet("arms", ARM).fit(1_000)
    assert (await store.figures())["columns_bytes"] >= before + 1_000 * ARM.itemsize
