"""What feedstock's focused crawl and ours share: groups of links are merged, and the crawl's state is one of 729."""

from __future__ import annotations

import re
from bisect import insort
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from crawlguide.core.tables import I64

BINS = (0.33, 0.66)
BEGINNING = re.compile("[:/]")


def state_of(values: Iterable[float]) -> int:
    """The number of a state: each value falls into one of three bins, so n values give 0 to 3ⁿ − 1."""
    state = 0
    for value in values:
        state = 3 * state + sum(value >= bound for bound in BINS)
    return state


def merged_by_page(names: Sequence[str], pages: I64, most: int) -> list[str]:
    """The group of each link after merging; of equally small groups of a page the first by name goes."""
    groups: list[str] = []
    starts = [0, *(np.flatnonzero(np.diff(pages)) + 1).tolist(), len(names)]
    for start, end in pairwise(starts):
        of_page, sizes = names[start:end], Counter(names[start:end])
        if len(sizes) > most:
            into = merges({name: sizes[name] for name in sorted(sizes)}, most)
            of_page = [into[name] for name in of_page]
        groups += of_page
    return groups


def merged(names: Sequence[str], most: int) -> list[str]:
    """The group of each link of a page after merging; of equally small groups the first on the page goes."""
    into = merges(Counter(names), most)
    return [into[name] for name in names]


def merges(sizes: Mapping[str, int], most: int) -> dict[str, str]:
    """The group into which each goes: while there are too many, the smallest goes into the smallest that begins alike
    (`same:`, `cross:`, the host), else into the smallest of all."""
    members = {name: [name] for name in sizes}
    places = {name: (place, name, BEGINNING.split(name, 1)[0]) for place, name in enumerate(sizes)}
    by_size = sorted((size, *places[name]) for name, size in sizes.items())
    for _ in range(len(sizes) - most):
        size, _, small, beginning = by_size.pop(0)
        alike = next((at for at, group in enumerate(by_size) if group[3] == beginning), 0)
        larger, _, name, _ = by_size.pop(alike)
        members[name] += members.pop(small)
        insort(by_size, (larger + size, *places[name]))
    return {name: group for group, names in members.items() for name in names}
