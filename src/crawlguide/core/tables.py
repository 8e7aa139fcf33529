"""Frozen tables of numpy columns: the form in which candidates, hosts and fetches pass through all stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Protocol, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
I8 = npt.NDArray[np.int8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
Text = npt.NDArray[np.object_]
Array = TypeVar("Array", bound=np.ndarray[Any, Any])


@cache
def column_names(table: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(table) if f.metadata.get("column", True))


@dataclass(frozen=True)
class Table:
    """A frozen set of equally long columns. Columns of numbers may lie together in one matrix, `facts`, a row each."""

    def take(self, rows: Rows | Mask) -> Self:
        """The given rows of every column."""
        numbers = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        mine, kind = self.__dict__, cast(Any, type(self))
        return self._with({name: mine[name].take(numbers, -1) for name in column_names(kind)})

    def attach(self, **columns: Any) -> Self:
        """The same table with some columns replaced."""
        kind = type(self)
        numbers = {name: columns.pop(name) for name in list(columns) if isinstance(vars(kind).get(name), Fact)}
        if numbers:
            columns["facts"] = self.__dict__["facts"].copy()
            for name, column in numbers.items():
                columns["facts"][vars(kind)[name].place] = column
        return self._with(columns)

    def extended(self, more: Sequence[Self]) -> Self:
        """The same table with the rows of others behind its own."""
        if not more:
            return self
        tables = [table.__dict__ for table in (self, *more)]
        names = column_names(cast(Any, type(self)))
        return self._with({name: np.concatenate([table[name] for table in tables], axis=-1) for name in names})

    def _with(self, columns: Mapping[str, Any]) -> Self:
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **columns)
        return new


class Fact:
    """A column that is a row of its table's matrix `facts`."""

    def __init__(self, place: int, meaning: str) -> None:
        self.place, self.__doc__ = place, meaning

    def __get__(self, table: Any, owner: Any = None) -> F64:
        column: F64 = table.__dict__["facts"][self.place]
        return column


def count_facts(table: type[Table]) -> int:
    """How many rows a table's matrix `facts` has."""
    return sum(isinstance(value, Fact) for value in vars(table).values())


class Readable(Protocol):
    """Texts by row or id: a column in memory, or something that reads them from elsewhere."""

    def take(self, keys: Any, /) -> Any: ...


class Lookup:
    """A lazy column of texts: only the rows that are left when somebody reads it are looked up.

    Of two hundred candidates thirty reach the answer; the texts of the others are never touched.
    """

    def __init__(self, source: Readable, keys: Rows | U64) -> None:
        """`keys` say of each row where the source has its text."""
        self._source, self._keys = source, keys

    def take(self, rows: Rows, axis: int = -1) -> Lookup:
        return Lookup(self._source, self._keys.take(rows, axis))

    def __getitem__(self, rows: Rows | Mask | slice) -> Text:
        found: Text = self._source.take(self._keys[rows])
        return found

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def tolist(self) -> list[str]:
        return self._source.take(self._keys).tolist()  # type: ignore[no-any-return]


BESIDE = {"column": False}  # marks a field that belongs to the whole table and not to a row


def rows_of(records: Array, rows: Rows) -> Array:
    """The given rows of a column of records, copied whole: several times faster than numpy's copy field by field."""
    size = records.dtype.itemsize
    taken = records.view(np.uint8).reshape(-1, size).take(rows, axis=0)
    return taken.reshape(-1).view(records.dtype)  # type: ignore[no-any-return]
