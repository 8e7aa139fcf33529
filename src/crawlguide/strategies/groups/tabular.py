"""A table of Q by state and group, and feedstock's state of a crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import f64s, i64s, kernel, nothing, one_f64, records
from crawlguide.strategies.shared.draws import mixed
from crawlguide.strategies.shared.record_table import RecordTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crawlguide.core.notebook import Sheet
    from crawlguide.core.tables import F64, U64

BINS = (0.33, 0.66)


def binned(values: Iterable[float]) -> int:
    """From 0 to 3ⁿ − 1."""
    state = 0
    for value in values:
        state = 3 * state + sum(value >= bound for bound in BINS)
    return state


CELL = np.dtype([("id", np.uint64), ("plays", np.float64), ("reward", np.float64)])
CELLS = records(CELL)
LITTLE = 3.0  # fetches of a group in a state, before it is believed as much as the group is


class Table:
    """`memory` is how much of what was known still counts after the next fetch."""

    def __init__(self, sheet: Sheet, memory: float) -> None:
        self._cells, self._memory = RecordTable(sheet), memory

    def __len__(self) -> int:
        return self._cells.sheet.used

    def quality(self, state: int, groups: U64, usual: F64) -> F64:
        """Q of these groups in a state, given what each of them pays in all states."""
        rows = self._cells.find(_ids(state, groups))
        if not len(self):
            return usual
        plays, reward = self._cells.records["plays"][rows], self._cells.records["reward"][rows]
        return np.where(rows < 0, usual, (reward + LITTLE * usual) / (plays + LITTLE))

    def learn(self, state: int, groups: U64, reward: F64) -> None:
        """Fetches of these groups in a state, one after the other."""
        rows, _ = self._cells.claim(_ids(state, groups))
        add(self._cells.records, rows, reward, self._memory)
        self._cells.sheet.changed(rows)


def _ids(state: int, groups: U64) -> U64:
    return mixed(groups ^ mixed(np.array([state + 1], np.uint64)))


@kernel(nothing(CELLS, i64s, f64s, one_f64))
def add(cells, rows, reward, memory):  # type: ignore[no-untyped-def]
    for number in range(len(rows)):
        cell = cells[rows[number]]
        cell.plays = memory * cell.plays + 1.0
        cell.reward = memory * cell.reward + reward[number]
