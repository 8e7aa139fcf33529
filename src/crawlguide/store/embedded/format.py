"""The folder says how it was written: a newer way is refused, an older one is read by the names of its fields."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from crawlguide.core.errors import ConfigError, DataError
from crawlguide.store.embedded.journal import TABLE_KINDS, Column

if TYPE_CHECKING:
    from pathlib import Path

VERSION = 2  # 2: notebooks


class Written(msgspec.Struct):
    """How the records of a folder are laid out."""

    version: int
    tables: dict[str, str]


def now() -> bytes:
    return msgspec.json.encode(Written(VERSION, {name: layout(kind) for name, kind in TABLE_KINDS.items()}))


@lru_cache(maxsize=1_000)
def layout(kind: np.dtype[Any]) -> str:
    """A record's fields, kinds and places as text."""
    if kind.names is None or kind.fields is None:
        return kind.str
    fields = [[name, _kind(kind.fields[name][0]), kind.fields[name][1]] for name in kind.names]
    return msgspec.json.encode({"size": kind.itemsize, "fields": fields}).decode()


def laid_out(text: str) -> np.dtype[Any]:
    """The record that a layout describes."""
    if not text.startswith("{"):
        return np.dtype(text)
    read = msgspec.json.decode(text)
    names, kinds, offsets = zip(*read["fields"], strict=True)
    formats = [(kind[0], tuple(kind[1])) for kind in kinds]
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": read["size"]})


def _kind(field: np.dtype[Any]) -> list[Any]:
    return [field.base.str, list(field.shape)]


@dataclass(frozen=True)
class Reader:
    """Turns records as they were written into records as they are now."""

    version: int
    tables: dict[str, np.dtype[Any]]

    @property
    def is_old(self) -> bool:
        """Whether records were laid out differently."""
        return any(self.tables.get(name) != kind for name, kind in TABLE_KINDS.items())

    def records(self, table: str, data: bytes) -> Column:
        kind = self.tables[table]
        old = whole(table, kind, data)
        if kind == TABLE_KINDS[table]:
            return old
        if kind.names is None:
            return old.astype(TABLE_KINDS[table])
        new = np.zeros(len(old), TABLE_KINDS[table])
        for name in set(kind.names or ()) & set(new.dtype.names or ()):
            new[name] = old[name]
        for name in set(new.dtype.names or ()) - set(kind.names or ()):
            if new.dtype[name] == np.float64:
                new[name] = np.nan  # not known
        return new


def whole(table: str, kind: np.dtype[Any], data: bytes) -> Column:
    """The records in some bytes of a table."""
    if len(data) % kind.itemsize:
        raise DataError(f"data: a piece of table {table!r} has {len(data)} bytes, not a multiple of {kind.itemsize}")
    return np.frombuffer(data, kind)


def reader(stored: bytes, folder: Path) -> Reader:
    try:
        written = msgspec.json.decode(stored, type=Written)
    except msgspec.DecodeError as wrong:
        raise DataError(f"data: {folder} does not say how it was written: {wrong}") from None
    if written.version > VERSION:
        raise ConfigError(
            f"data: {folder} was written by a newer crawlguide (format {written.version});"
            f" this one reads formats up to {VERSION}: use the newer one"
        )
    return Reader(written.version, {name: laid_out(text) for name, text in written.tables.items()})
