"""Where strategies and filters keep what they learn: a notebook for each crawl, with sheets of records.

A strategy writes into its sheets and marks the rows it changed; the store that owns the notebook saves them in the same
commit as everything else. So what was learned is never ahead of the frontier on disk, and never behind it.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from crawlguide.core.columns import within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import I64

Records = np.ndarray[Any, Any]
LONGEST_NAME = 8
LONGEST_SECTION = 100
STEP = 1 << 16  # records by which a large sheet grows
FIRST_BYTES, FIRST_RECORDS = 4_096, 64  # room of a sheet that begins: where there are very many crawls, most are small
MOST_PACKED_BYTES = 1 << 20  # larger sheets stay as they are: packing one would keep others waiting


class Sheet:
    """A growing array of records. `rows` is another array after it grew: do not hold on to it.

    A sheet that nobody uses may be packed; whoever touches its rows unpacks it.
    """

    def __init__(self, kind: np.dtype[Any]) -> None:
        self._rows: Records = np.zeros(0, kind)
        self._packed: bytes | None = None
        self.used = 0  # records in use; the rest is spare capacity

    @property
    def rows(self) -> Records:
        if self._packed is not None:
            self._rows, self._packed = self.look(), None
        return self._rows

    @rows.setter
    def rows(self, rows: Records) -> None:
        self._rows, self._packed = rows, None

    def look(self) -> Records:
        """The records for somebody who changes nothing: what is packed stays so."""
        return self._rows if self._packed is None else unpacked(self._packed, self.kind).copy()

    @property
    def packed(self) -> bytes | None:
        """All records in use as they are packed, which never change; None: they are not packed."""
        return self._packed

    def pack(self) -> None:
        """Nobody uses it for now. Most sheets are of records that are mostly alike."""
        if self._packed is None and 0 < self._rows.nbytes <= MOST_PACKED_BYTES:
            self._packed = zlib.compress(self._rows[: self.used].tobytes(), 1)
            self._rows = np.zeros(0, self._rows.dtype)

    @property
    def kind(self) -> np.dtype[Any]:
        kind: np.dtype[Any] = self._rows.dtype
        return kind

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self._rows.nbytes if self._packed is None else len(self._packed)

    def fit(self, count: int) -> None:
        """Have at least so many records in use; new ones are all zeros."""
        if count > len(self.rows):
            self._grow(count)
        self.used = max(self.used, count)

    def _grow(self, count: int) -> None:
        """In place if nobody holds a view of the records, so that no request pays for copying all of them."""
        room = len(self.rows)
        try:
            first = min(FIRST_RECORDS, 1 + FIRST_BYTES // self.kind.itemsize)
            self._rows.resize(max(count, min(2 * room, room + STEP), first))  # new records are zeros
        except ValueError:  # somebody holds on to them, or to a part of them
            longer = np.zeros(max(count, 2 * room), self.kind)
            longer[: self.used] = self._rows[: self.used]
            self.rows = longer

    def changed(self, rows: I64) -> None:
        """Mark records as dirty, before the next commit; in any order, some perhaps twice."""
        if not within(rows, self.used):
            raise IndexError(f"records 0 to {self.used - 1} are in use, told that {rows.min()} to {rows.max()} changed")


def unpacked(packed: bytes, kind: np.dtype[Any]) -> Records:
    """The records of a packed sheet. It takes long where there are many of them: better in a thread."""
    return np.frombuffer(zlib.decompress(packed), kind)


class Notebook:
    """The sheets of one crawl, in memory alone."""

    def __init__(self) -> None:
        self._sheets: dict[str, Sheet] = {}

    def sheet(self, name: str, kind: np.dtype[Any]) -> Sheet:
        """The sheet of that name as it was left; empty if there was none, or one with records of another kind."""
        found = self._sheets.get(name)
        if found is None or found.kind != kind:
            _check(name, kind)
            found = self._sheets[name] = self._blank(name, kind)
        elif found.rows.dtype.isalignedstruct != kind.isalignedstruct:
            # the same records, read without their alignment, which kernels refuse; a view of them could not grow
            found.rows.dtype = kind  # type: ignore[misc]
        return found

    def take_over(self, other: Notebook, names: Sequence[str]) -> bool:
        """Begin with another's sheets of these names, unless one of them is in use here; whether anything was taken."""
        mine, theirs = self.in_use(), other.in_use()
        taken = [name for name in names if name in theirs]
        if not taken or not mine.keys().isdisjoint(names):
            return False
        for name in taken:
            sheet, source = self.sheet(name, theirs[name].kind), theirs[name]
            sheet.fit(source.used)
            sheet.rows[: source.used] = source.look()[: source.used]
            sheet.changed(np.arange(source.used))
        return True

    def in_use(self) -> dict[str, Sheet]:
        """The sheets with records, by name."""
        return {name: sheet for name, sheet in sorted(self._sheets.items()) if sheet.used}

    @property
    def nbytes(self) -> int:
        """The memory that all sheets take."""
        return sum(sheet.nbytes for sheet in self._sheets.values())

    def pack(self) -> None:
        """Nobody uses it for now."""
        for sheet in self._sheets.values():
            sheet.pack()

    def _blank(self, name: str, kind: np.dtype[Any]) -> Sheet:  # noqa: ARG002 - a store that keeps it needs the name
        return Sheet(kind)


class Section(Notebook):
    """The part of a notebook that belongs to one of several strategies: its sheets are named after it."""

    def __init__(self, notebook: Notebook, name: str) -> None:
        super().__init__()
        self._notebook, self._name = notebook, name

    @staticmethod
    def named(section: str, sheet: str) -> str:
        """The name of a sheet in the whole notebook; without a section it is its own."""
        return f"{section}/{sheet}" if section else sheet

    def sheet(self, name: str, kind: np.dtype[Any]) -> Sheet:
        return self._notebook.sheet(self.named(self._name, name), kind)


@runtime_checkable
class Remembers(Protocol):
    """A predictor, sampler or filter that keeps what it learns in a notebook."""

    def remember(self, notebook: Notebook) -> None:
        """Called once, before anything else: go on from what is in the notebook, and write into it from now on."""
        ...


@runtime_checkable
class Transfers(Remembers, Protocol):
    """One that can start with what another crawl has learned."""

    @property
    def transferable(self) -> tuple[str, ...]:
        """The sheets that mean the same in another crawl: no numbers of its rows, no ids of its URLs."""
        ...


def _check(name: str, kind: np.dtype[Any]) -> None:
    """A sheet has to be stored on a disk, and read by other versions of numpy."""
    section, _, own = name.rpartition("/")
    if not (0 < len(own) <= LONGEST_NAME and name.isascii() and name.isprintable()) or len(section) > LONGEST_SECTION:
        raise ValueError(f"sheet {own!r}: expected a name of 1 to {LONGEST_NAME} printable ASCII characters")
    fields = [kind] if kind.fields is None else [field[0].base for field in kind.fields.values()]
    if kind.subdtype or not kind.itemsize or any(each.hasobject or each.names for each in fields):
        raise ValueError(f"sheet {name!r}: expected numbers, or records of numbers and arrays of numbers, got {kind}")
