"""feedstock's limit on the number of link groups: the smallest are merged."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from crawlguide.core.tables import I64

BEGINNING = re.compile("[:/]")


def merged_by_page(names: Sequence[str], pages: I64, most: int) -> list[str]:
    """The same for the links of each page; of equally small groups the first by name, whatever their order is."""
    found: list[str] = []
    starts = [0, *(np.flatnonzero(np.diff(pages)) + 1).tolist(), len(names)]
    for start, end in pairwise(starts):
        mine = names[start:end]
        into = merges(Counter(sorted(mine)), most)
        found += [_end(name, into) for name in mine] if into else mine
    return found


def merged(names: Sequence[str], most: int) -> list[str]:
    """The group of each link of a page after merging; of equally small groups the first on the page goes."""
    into = merges(Counter(names), most)
    return [_end(name, into) for name in names]


def merges(sizes: Counter[str], most: int) -> dict[str, str]:
    """Which groups go into which: while there are too many, the smallest into the smallest that begins alike (`same:`,
    `cross:`, the host), else into the smallest of all."""
    into: dict[str, str] = {}
    beginnings = {name: BEGINNING.split(name, 1)[0] for name in sizes} if len(sizes) > most else {}
    while len(sizes) > most:
        small = smallest(sizes, sizes)
        size = sizes.pop(small)
        alike = [name for name in sizes if beginnings[name] == beginnings[small]]
        into[small] = smallest(alike or sizes, sizes)
        sizes[into[small]] += size
    return into


def smallest(names: Iterable[str], sizes: Counter[str]) -> str:
    return min(names, key=sizes.__getitem__)


def _end(name: str, into: dict[str, str]) -> str:
    while name in into:
        name = into[name]
    return name
