"""The pages about `layered` are what the code says: every column, every part, and the drawing is that of the table."""

from __future__ import annotations

from scripts import columns, parts

from crawlguide.strategies.layered.columns import NAMES
from crawlguide.strategies.layered.records import COVARIANCE, EXAMPLE, LINK, PAGE, PLACE, WEIGHT
from crawlguide.strategies.layered.tuning import PARTS

ORDERING = columns.PAGE.with_name("ordering.md")


def test_the_pages_of_columns_are_up_to_date() -> None:
    assert columns.PAGE.read_text() == columns.page(), "run python -m scripts.columns"
    assert columns.COSTS_PAGE.read_text() == columns.costs_page(), "run python -m scripts.columns"


def test_what_is_said_of_columns_is_said_of_columns_that_exist() -> None:
    assert {*columns.LOOKS_AT, *columns.FUNCTIONS} <= set(NAMES)


def test_every_part_that_can_be_left_out_is_explained() -> None:
    text = ORDERING.read_text()
    assert [part for part in PARTS if f"`{part}`" not in text] == []


def test_the_bytes_of_what_is_kept_are_those_of_the_records() -> None:
    table = ORDERING.read_text().partition("| kept | bytes |")[2].partition("\n\n")[0]
    told = [int(line.split("|")[2]) for line in table.splitlines()[2:]]
    assert told == [kind.itemsize for kind in (LINK, PLACE, PAGE, EXAMPLE, COVARIANCE, WEIGHT)]


def test_the_drawing_shows_the_table() -> None:
    assert {row.web for row in parts.rows()} == {"docsweb", "debpkg", "wikispeedia"}
    assert parts.DRAWING.read_text() == parts.drawing(), "run python -m scripts.parts"
