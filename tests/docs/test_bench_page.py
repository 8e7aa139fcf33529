"""docs/bench.md names every figure that the tables show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crawlguide.lab.speed.table import GROWTH_ROWS, ROWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.lab.speed.table import Row

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "bench.md").read_text()
MADE = {"growth", "resident_mib"}  # by the table itself


@pytest.mark.parametrize(("fields", "rows"), [("Fields of a size", ROWS), ("Fields of a point", GROWTH_ROWS)])
def test_every_figure_of_the_table_is_explained(fields: str, rows: Sequence[Row]) -> None:
    listed = PAGE.partition(fields)[2].partition("\nFields of ")[0]
    named = set(re.findall(r"`([a-z_0-9]+)`", listed))
    assert {name for _, keys, _ in rows for name in ((keys,) if isinstance(keys, str) else keys)} - MADE <= named
