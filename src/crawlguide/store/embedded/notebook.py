"""Notebooks in a folder: records that changed go into the journal with the rows of the same commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np

from crawlguide.core.notebook import Notebook, Sheet
from crawlguide.store.embedded import format as formats
from crawlguide.store.embedded import journal

if TYPE_CHECKING:
    from crawlguide.core.tables import I32, I64
    from crawlguide.store.embedded.keyspaces import DiskKeyspace

MARK = "~"  # no table of ours begins with it


class Listed(msgspec.Struct, array_like=True):
    """A sheet in its crawl's list. One that begins anew with other records gets a number that was never used."""

    number: int
    layout: str


class DiskSheet(Sheet):
    """Knows which of its records are dirty; a sheet with dirty records is in `dirty`."""

    def __init__(self, kind: np.dtype[Any], owner: int, number: int, dirty: dict[DiskSheet, None]) -> None:
        super().__init__(kind)
        self.owner, self.table = owner, f"{MARK}{number}"
        self._dirty = dirty
        self._changed: list[I64] | None = None  # no list for each of a hundred thousand sheets that rest
        self._length = 0  # that was written

    def fit(self, count: int) -> None:
        if count > self.used:
            super().fit(count)
            self._dirty[self] = None

    def changed(self, rows: I64) -> None:
        super().changed(rows)
        self._note(rows.astype(np.int64))  # a copy: callers use their arrays again
        self._dirty[self] = None

    def _note(self, rows: I64) -> None:
        self._changed = [] if self._changed is None else self._changed
        self._changed.append(rows)

    def take(self) -> I64:
        """The records that changed, each once; from here on nothing has.

        The last one in use is among them if it is new: so a sheet is as long as the highest record that was written.
        """
        if self.used > self._length:
            self._note(np.array([self.used - 1]))
            self._length = self.used
        rows, self._changed = journal.each_once(self._changed or []), None
        return rows

    def put(self, rows: I32 | I64, data: bytes) -> None:
        """Take over records as they were stored."""
        records = formats.whole(self.table, self.kind, data)
        if len(rows):
            super().fit(int(rows.max()) + 1)
            self.rows = journal.put(self.rows, rows, records)
        self._length = self.used


class DiskNotebook(Notebook):
    def __init__(self, owner: int, keyspace: DiskKeyspace, dirty: dict[DiskSheet, None]) -> None:
        super().__init__()
        self._owner, self._keyspace, self._dirty = owner, keyspace, dirty
        self._newest = 0

    def open(self) -> None:
        """Blank sheets for all that are listed; their records are put as they are read."""
        for key, value in self._keyspace.items():
            listed = msgspec.msgpack.decode(value, type=Listed)
            self._sheets[key.decode()] = self._sheet(formats.laid_out(listed.layout), listed.number)
            self._newest = max(self._newest, listed.number)

    def sheets(self) -> list[DiskSheet]:
        return [cast("DiskSheet", sheet) for sheet in self._sheets.values()]

    def replaced(self) -> list[str]:
        """The tables of sheets that gave way to others."""
        known = {sheet.table for sheet in self.sheets()}
        return [table for number in range(1, self._newest) if (table := f"{MARK}{number}") not in known]

    def _blank(self, name: str, kind: np.dtype[Any]) -> Sheet:
        self._newest += 1
        self._keyspace.put(name.encode(), msgspec.msgpack.encode(Listed(self._newest, formats.layout(kind))))
        return self._sheet(kind, self._newest)

    def _sheet(self, kind: np.dtype[Any], number: int) -> DiskSheet:
        return DiskSheet(kind, self._owner, number, self._dirty)
