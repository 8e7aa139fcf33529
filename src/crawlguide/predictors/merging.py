"""feedstock's limit on the number of link groups: the smallest are merged."""

from __future__ import annotations

import re
from bisect import insort
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.tables import I64

BEGINNING = re.compile("[:/]")


def merged_by_page(names: Sequence[str], pages: I64, most: int) -> list[str]:
    """The group of each link after merging; of equally small groups of a page the first by name goes."""
    found: list[str] = []
    starts = [0, *(np.flatnonzero(np.diff(pages)) + 1).tolist(), len(names)]
    for start, end in pairwise(starts):
        mine, sizes = names[start:end], Counter(names[start:end])
        if len(sizes) > most:
            into = merges({name: sizes[name] for name in sorted(sizes)}, most)
            mine = [into[name] for name in mine]
        found += mine
    return found


def merged(names: Sequence[str], most: int) -> list[str]:
    """The group of each link of a page after merging; of equally small groups the first on the page goes."""
    into = merges(Counter(names), most)
    return [into[name] for name in names]


def merges(sizes: Mapping[str, int], most: int) -> dict[str, str]:
    """The group into which each goes: while there are too many, the smallest goes into the smallest that begins alike
    (`same:`, `cross:`, the host), else into the smallest of all."""
    members = {name: [name] for name in sizes}
    places = {name: (place, name, BEGINNING.split(name, 1)[0]) for place, name in enumerate(sizes)}
    everyone = sorted((size, *places[name]) for name, size in sizes.items())
    for _ in range(len(sizes) - most):
        size, _, small, beginning = everyone.pop(0)
        alike = next((at for at, group in enumerate(everyone) if group[3] == beginning), 0)
        larger, _, name, _ = everyone.pop(alike)
        members[name] += members.pop(small)
        insort(everyone, (larger + size, *places[name]))
    return {name: group for group, names in members.items() for name in names}
