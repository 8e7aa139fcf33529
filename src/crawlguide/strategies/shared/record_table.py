"""The URLs a learner has heard of: a record for each, in a sheet that begins with the URL's id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.store.tables.index import Index

if TYPE_CHECKING:
    from crawlguide.core.notebook import Records, Sheet
    from crawlguide.core.tables import I64, U64, Mask


class RecordTable:
    """Records by id. The index is made anew from the sheet, so only the sheet has to last."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self._index = Index()
        self._index.ids = sheet.rows["id"][: sheet.used].copy()
        self._index.load(sheet.used, np.arange(sheet.used))

    @property
    def records(self) -> Records:
        """All of them, and room behind; another array after `claim`."""
        return self.sheet.rows

    def find(self, ids: U64) -> I64:
        """The row of each id, -1 where it is unknown."""
        return self._index.find(ids)

    def claim(self, ids: U64) -> tuple[I64, Mask]:
        """The row of each id, new ones for unknown ids; and which of them are new, each once."""
        rows, fresh = self._index.claim(ids)
        new: Mask = fresh.astype(np.bool_)
        self.sheet.fit(self._index.rows)
        self.sheet.rows["id"][rows[new]] = ids[new]
        return rows, new
