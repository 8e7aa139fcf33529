"""docs/bench.md names every figure that the tables show."""

from __future__ import annotations

import re
from pathlib import Path

from crawlguide.lab.speed.table import ROWS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "bench.md").read_text()


def test_every_figure_of_the_table_is_explained() -> None:
    named = set(re.findall(r"`([a-z_0-9]+)`", PAGE.partition("Fields of a size")[2]))
    shown = {name for _, keys, _ in ROWS for name in ((keys,) if isinstance(keys, str) else keys)} - {"growth"}
    assert shown <= named
