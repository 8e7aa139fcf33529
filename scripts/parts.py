"""Draw docs/images/ordering-parts.svg: what `layered` finds with one part left out, from the table of the page itself.

`python -m scripts.parts` draws it; with `--check` it only says whether the drawing is up to date.
"""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from scripts.reference import DOCS, write_or_check

PAGE: Path = DOCS / "research" / "layered.md"
DRAWING: Path = DOCS / "images" / "ordering-parts.svg"
ROW = re.compile(r"^\| (\w+) \| `?([a-z]+)`? \| \S+ \| (\.\d+) \| \S+ \| (\.\d+) \| \.\d+ \|$", re.MULTILINE)
LEFT, BAR, STEP, TOP, WIDE = 110, 22, 30, 64, 300  # of a panel, in pixels
PANEL = LEFT + WIDE + 70
GREY, DARK, PALE = "#808080", "#00897b", "#80cbc4"  # readable on light and on dark

TITLE = "harvest with one part left out: dark at 500 requests, pale at 2 000"


class Row(NamedTuple):
    web: str
    part: str
    early: float  # harvest at 500
    late: float  # and at 2 000


def rows() -> list[Row]:
    return [Row(web, part, float(early), float(late)) for web, part, early, late in ROW.findall(PAGE.read_text())]


def drawing() -> str:
    panels = [list(found) for _, found in groupby(rows(), lambda row: row.web)]
    scale = WIDE / max(row.early for panel in panels for row in panel)
    width, height = PANEL * len(panels), TOP + STEP * max(map(len, panels)) + 10
    drawn = "".join(_panel(panel, PANEL * number, scale) for number, panel in enumerate(panels))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" fill="{GREY}"'
    return f'{head} font-family="sans-serif" font-size="13">\n{_text(0, 16, TITLE)}{drawn}</svg>\n'


def _panel(panel: list[Row], x: int, scale: float) -> str:
    """The bars of one web, and a line where the whole of it ends."""
    whole = x + LEFT + round(panel[0].early * scale, 1)
    bottom = TOP + STEP * len(panel) - STEP + BAR
    line = f'<path d="M{whole} {TOP - 6}V{bottom + 6}" stroke="{GREY}" stroke-dasharray="3 3"/>\n'
    bars = "".join(_bar(row, x, TOP + STEP * number, scale) for number, row in enumerate(panel))
    return _text(x + LEFT, TOP - 16, panel[0].web, "bold") + bars + line


def _bar(row: Row, x: int, y: int, scale: float) -> str:
    early, late = round(row.early * scale, 1), round(row.late * scale, 1)
    return (
        _text(x, y + 15, row.part)
        + f'<rect x="{x + LEFT}" y="{y}" width="{early}" height="{BAR / 2:g}" fill="{DARK}"/>\n'
        + f'<rect x="{x + LEFT}" y="{y + BAR / 2:g}" width="{late}" height="{BAR / 2:g}" fill="{PALE}"/>\n'
        + _text(x + LEFT + WIDE + 12, y + 15, f"{row.early:.3f}".removeprefix("0"))
    )


def _text(x: float, y: float, words: str, weight: str = "normal") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-weight="{weight}">{words}</text>\n'


if __name__ == "__main__":
    write_or_check({DRAWING: drawing()}, __doc__)
