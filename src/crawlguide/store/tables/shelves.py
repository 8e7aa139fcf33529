"""Where a crawl keeps what does not belong into columns: texts, links, metadata, leases, names of hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from crawlguide.core.columns import texts

if TYPE_CHECKING:
    from crawlguide.core.tables import I64, Rows, Text


class Shelf(Protocol):
    """Bytes by key, of one kind. What was put is seen at once; when it lasts is said by the store's `commit`."""

    def get(self, key: bytes) -> bytes | None: ...

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]: ...

    def put(self, key: bytes, value: bytes) -> None: ...

    def delete(self, key: bytes) -> None: ...

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Everything, in the order of the keys."""
        ...


class MemoryShelf:
    def __init__(self) -> None:
        self._kept: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        return self._kept.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self._kept.get(key) for key in keys]

    def put(self, key: bytes, value: bytes) -> None:
        self._kept[key] = value

    def delete(self, key: bytes) -> None:
        self._kept.pop(key, None)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        return iter(sorted(self._kept.items()))


@dataclass(frozen=True)
class Shelves:
    """All shelves of one crawl."""

    urls: Shelf
    metadata: Shelf
    links: Shelf
    leases: Shelf
    hosts: Shelf
    states: Shelf


def in_memory() -> Shelves:
    return Shelves(*(MemoryShelf() for _ in range(6)))


def key_of(number: int, size: int = 4) -> bytes:
    """A number, say of a row, as a key: in order of the numbers."""
    return number.to_bytes(size, "big")


class Texts:
    """The URL of each row, read from the shelf when somebody asks for it."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def put(self, rows: I64, urls: Text) -> None:
        for row, url in zip(rows.tolist(), urls.tolist(), strict=True):
            self._shelf.put(key_of(row), url.encode())

    def forget(self, rows: Sequence[int]) -> None:
        for row in rows:
            self._shelf.delete(key_of(row))

    def of(self, row: int) -> str:
        return (self._shelf.get(key_of(row)) or b"").decode()

    def take(self, rows: Rows) -> Text:
        found = self._shelf.get_many([key_of(row) for row in rows.tolist()])
        return texts([(url or b"").decode() for url in found])
