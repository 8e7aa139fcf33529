"""What every learning strategy needs: a record for each URL, and what came of each fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core.outcomes import LATE, failures, releases
from crawlguide.store.tables.index import Index

if TYPE_CHECKING:
    from crawlguide.core.notebook import Records, Sheet
    from crawlguide.core.tables import F64, I64, U64, Mask
    from crawlguide.core.types import Lesson


class RecordTable:
    """Records by id, in a sheet whose first field is the id. The index is rebuilt from the sheet when it is opened."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self._index = Index()
        self._index.ids = sheet.rows["id"][: sheet.used].copy()
        self._index.load(sheet.used, np.arange(sheet.used))

    @property
    def records(self) -> Records:
        """All of them, and spare ones behind; another array after `claim`."""
        return self.sheet.rows

    def find(self, ids: U64) -> I64:
        """The row of each id, -1 where there is none."""
        return self._index.find(ids)

    def claim(self, ids: U64) -> tuple[I64, Mask]:
        """The row of each id, new ones for unknown ids; and which of them are new, each once."""
        rows, fresh = self._index.claim(ids)
        new: Mask = fresh.astype(np.bool_)
        self.sheet.fit(self._index.rows)
        self.sheet.rows["id"][rows[new]] = ids[new]
        return rows, new

    def column(self, name: str, ids: U64, default: float) -> F64:
        """One column of the records of these ids; `default` where there is no record."""
        rows = self.find(ids)
        found = np.full(len(ids), default)
        found[rows >= 0] = self.records[name][rows[rows >= 0]]
        return found


class Outcomes(NamedTuple):
    """What came of each fetch of a lesson. `reward` is NaN where it was not judged: there is nothing to learn yet."""

    reward: F64
    failed: Mask
    late: Mask  # feedback on a fetch that was reported before
    released: Mask  # returned without being fetched

    @property
    def counted(self) -> Mask:
        """Fetches whose reward is learned from: judged, and not a correction of an earlier reward."""
        counted: Mask = ~np.isnan(self.reward) & ~self.late
        return counted


def outcomes(lesson: Lesson) -> Outcomes:
    fetches = lesson.fetches
    released = releases(fetches)
    return Outcomes(lesson.reward, failures(fetches) & ~released, fetches.status == LATE, released)
