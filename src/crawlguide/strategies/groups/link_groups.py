"""What feedstock's focused crawl and ours share: groups of links are merged, and the crawl's state is one of 729."""

from __future__ import annotations

import re
from collections import Counter
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from crawlguide.core.tables import I64

    Standing = tuple[int, int, str]

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
    groups = BySize(sizes)
    for _ in range(len(sizes) - most):
        size, small = groups.take()
        more, larger = groups.take(groups.beginnings[small])
        members[larger] += members.pop(small)
        groups.add(larger, size + more)
    return {name: group for group, names in members.items() for name in names}


class BySize:
    """Groups by their size, and of equally small ones by their place; those that begin alike stand together as well.

    Whoever is taken from one heap still stands in the other, where the size says that it is gone, or has grown.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.beginnings = {name: BEGINNING.split(name, 1)[0] for name in sizes}
        self._places = {name: place for place, name in enumerate(sizes)}
        self._sizes: dict[str, int] = {}
        self._all: list[Standing] = []
        self._alike: dict[str, list[Standing]] = {}
        for name, size in sizes.items():
            self.add(name, size)

    def add(self, name: str, size: int) -> None:
        self._sizes[name] = size
        standing = size, self._places[name], name
        heappush(self._all, standing)
        heappush(self._alike.setdefault(self.beginnings[name], []), standing)

    def take(self, beginning: str = "") -> tuple[int, str]:
        """The smallest of those that begin so, else of all: its size and its name."""
        for heap in (self._alike.get(beginning, []), self._all):
            while heap:
                size, _, name = heappop(heap)
                if self._sizes.get(name) == size:
                    return self._sizes.pop(name), name
        raise IndexError
