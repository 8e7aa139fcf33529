"""From a URL's id to its row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.store.columns import grown
from crawlguide.store.kernels import index as kernels
from crawlguide.store.kernels.runs import ORDERS

if TYPE_CHECKING:
    from crawlguide.core.tables import I64, U64


class Index:
    """A growing hash index; rows of forgotten URLs are used again."""

    def __init__(self) -> None:
        self.ids: U64 = np.zeros(0, np.uint64)
        self._slots = np.zeros(0, kernels.SLOT)
        self._starts = np.zeros(kernels.SHARDS, np.int64)
        self._orders = np.full(kernels.SHARDS, -1, np.int32)
        self._filled = np.zeros(kernels.SHARDS, np.int32)
        self._free = np.full(ORDERS, -1, np.int64)
        self._used = np.zeros(1, np.int64)
        self._spare: list[int] = []
        self.rows = 0  # every row in use has a smaller number

    @property
    def live(self) -> int:
        """How many ids are known."""
        return self.rows - len(self._spare)

    def find(self, ids: U64) -> I64:
        """The row of each id, -1 where it is unknown."""
        rows = np.empty(len(ids), np.int64)
        kernels.find_all(ids, rows, self.ids, self._slots, self._starts, self._orders)
        return rows

    def claim(self, ids: U64) -> tuple[I64, I64]:
        """The row of each id, new rows for unknown ones; and which of them are new (1) or were known (0)."""
        rows, fresh = np.empty(len(ids), np.int64), np.zeros(len(ids), np.int64)
        spare = self._spares(len(ids))
        self.ids = grown(self.ids, self.rows + len(ids), 0)
        done = 0
        while done < len(ids):
            done = kernels.claim_all(
                ids, rows, fresh, done, spare, self.ids, self._slots, self._starts, self._orders,
                self._filled, self._free, self._used,
            )  # fmt: skip
            if done < len(ids):
                self._slots = grown(self._slots, self._room_for(ids[done]))
        self._take(spare)
        return rows, fresh

    def forget(self, rows: I64, *, patient: bool = False) -> None:
        """Unknown from now on; the rows will serve new ids, the last first; `patient`: after those that are spare."""
        kernels.forget_all(self.ids[rows], self.ids, self._slots, self._starts, self._orders)
        at = 0 if patient else len(self._spare)
        self._spare[at:at] = rows.tolist()

    def load(self, count: int, rows: I64) -> None:
        """Take over ids that were written down: these of `count` rows are in use, the others are spare."""
        self.rows, done = count, 0
        while done < len(rows):
            done = kernels.put_all(
                rows, done, self.ids, self._slots, self._starts, self._orders, self._filled, self._free, self._used
            )
            if done < len(rows):
                self._slots = grown(self._slots, self._room_for(self.ids[rows[done]]))
        spare = np.ones(count, np.bool_)
        spare[rows] = False
        self._spare = np.flatnonzero(spare)[::-1].tolist()

    def _spares(self, wanted: int) -> I64:
        """A count of rows used so far (none), then rows that are free, used ones first."""
        again = self._spare[-wanted:][::-1]
        found = np.arange(self.rows - len(again) - 1, self.rows + wanted - len(again))
        found[0], found[1 : 1 + len(again)] = 0, again
        return found

    def _take(self, spare: I64) -> None:
        taken = spare[1 : 1 + int(spare[0])]
        again = int((taken < self.rows).sum())
        if again:
            del self._spare[-again:]
        self.rows += len(taken) - again

    def _room_for(self, key: np.uint64) -> int:
        shard = int(key >> np.uint64(48)) & 255
        return int(self._used[0]) + (16 << max(0, int(self._orders[shard])))
