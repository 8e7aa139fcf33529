"""The link table: which page leads where, with which words, at which place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.columns import texts
from crawlguide.core.types import Paths
from crawlguide.store.columns import grown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crawlguide.core.tables import I32, I64, U64, Text


class LinkTable:
    """Links of one page stand together; links to one page are chained, newest first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parent: U64 = np.zeros(0, np.uint64)
        self._child: U64 = np.zeros(0, np.uint64)
        self._position: I32 = np.zeros(0, np.int32)
        self._next_in: I64 = np.zeros(0, np.int64)
        self._anchors: list[str] = []

    def __len__(self) -> int:
        return len(self._anchors)

    def has_room(self, count: int) -> bool:
        return len(self) + count <= self._most

    def add(self, parent: U64, child: U64, anchor: Text, position: I32, next_in: I64) -> None:
        """Append links, numbered from the present length on; `next_in` is the next link to the same child."""
        first, end = len(self), len(self) + len(child)
        for name, values in (
            ("_parent", parent), ("_child", child), ("_position", position), ("_next_in", next_in)
        ):  # fmt: skip
            column = grown(getattr(self, name), end)
            column[first:end] = values
            setattr(self, name, column)
        self._anchors.extend(anchor)

    def children(self, first: int, count: int) -> Paths:
        return self._paths(range(first, first + count))

    def child_ids(self, first: int, count: int) -> U64:
        return self._child[first : first + count].copy()

    def parents(self, newest: int, most: int | None = None) -> Paths:
        """Every page that links to a URL, once, by its newest link; or only so many of the newest."""
        seen: dict[int, int] = {}
        link = newest
        while link >= 0 and (most is None or len(seen) < most):
            seen.setdefault(int(self._parent[link]), link)
            link = int(self._next_in[link])
        return self._paths(seen.values())

    def _paths(self, numbers: Iterable[int]) -> Paths:
        rows = np.fromiter(numbers, np.intp)
        anchors = texts(self._anchors[row] for row in rows)
        return Paths(self._parent[rows], self._child[rows], anchors, self._position[rows])
