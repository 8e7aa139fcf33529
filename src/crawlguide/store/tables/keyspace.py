"""What does not belong into columns, as bytes by key: texts, links, metadata, leases, names of hosts, answers."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from crawlguide.core.columns import texts

if TYPE_CHECKING:
    from crawlguide.core.tables import I64, Rows, Text
    from crawlguide.core.types import Crawl


MOST_ANSWERS, MOST_REPORTED = 100_000, 5_000_000  # of one crawl, however long they were to be kept
MOST_FILES = 1_000_000  # robots.txt of all crawls, which are kept like answers of a crawl that is nobody's


def most_answers(crawl: Crawl) -> int:
    return MOST_ANSWERS if crawl.tenant else MOST_FILES


class Keyspace(Protocol):
    """Bytes by key, of one kind. What was put is seen at once; it lasts with the store's next `commit`."""

    def get(self, key: bytes) -> bytes | None: ...

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]: ...

    def put(self, key: bytes, value: bytes) -> None: ...

    def delete(self, key: bytes) -> None: ...

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Everything, in the order of the keys."""
        ...


class MemoryKeyspace:
    def __init__(self) -> None:
        self._entries: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        return self._entries.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self._entries.get(key) for key in keys]

    def put(self, key: bytes, value: bytes) -> None:
        self._entries[key] = value

    def delete(self, key: bytes) -> None:
        self._entries.pop(key, None)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        return iter(sorted(self._entries.items()))


@dataclass(frozen=True)
class Keyspaces:
    """Those of one crawl."""

    urls: Keyspace
    metadata: Keyspace
    links: Keyspace
    leases: Keyspace
    hosts: Keyspace
    states: Keyspace


MOST_RECENT = 20_000  # texts of a crawl that are kept in memory, 4 MB; at times half as many


def in_memory() -> Keyspaces:
    return Keyspaces(*(MemoryKeyspace() for _ in range(6)))


def key_of(number: int, size: int = 4) -> bytes:
    """A number, say of a row, as a key: in order of the numbers."""
    return number.to_bytes(size, "big")


class UrlTexts:
    """The URL of each row, read when somebody asks for it.

    Most that are asked for were found or read a moment ago, so the last ones are kept in memory.
    """

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self._recent: dict[int, str] = {}

    def put(self, rows: I64, urls: Text) -> None:
        new = dict(zip(rows.tolist(), urls.tolist(), strict=True))
        for row, url in new.items():
            self._keyspace.put(key_of(row), url.encode())
        self._keep(new)

    def forget(self, rows: Sequence[int]) -> None:
        for row in rows:
            self._keyspace.delete(key_of(row))
            self._recent.pop(row, None)

    def of(self, row: int) -> str:
        return (self._keyspace.get(key_of(row)) or b"").decode()

    def take(self, rows: Rows) -> Text:
        """The text of each row; empty where there is none, as of -1."""
        wanted = rows.tolist()
        found = list(map(self._recent.get, wanted))
        missing = [row for row, url in zip(wanted, found, strict=True) if url is None and row >= 0]
        if missing:
            stored = self._keyspace.get_many([key_of(row) for row in missing])
            read = {row: url.decode() for row, url in zip(missing, stored, strict=True) if url is not None}
            found = [read.get(row, url) for row, url in zip(wanted, found, strict=True)]
            self._keep(read)
        return texts([url or "" for url in found])

    @property
    def in_memory(self) -> int:
        return len(self._recent)

    def _keep(self, urls: Mapping[int, str]) -> None:
        """Of too many the older ones go."""
        self._recent.update(urls)
        if len(self._recent) > MOST_RECENT:
            self._recent = dict(islice(self._recent.items(), len(self._recent) - MOST_RECENT // 2, None))


class Expiring(Protocol):
    """Bytes by name, each until an instant of its own."""

    def get(self, key: str, at: float) -> bytes | None: ...

    def put(self, key: str, value: bytes, expires: float) -> None: ...

    def expire(self, at: float, most: int = ...) -> None:
        """Remove what has ended, at most so many entries a call."""
        ...


class MemoryExpiring:
    """A dictionary, and a heap of when its entries end. Of too many the first to end go."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: dict[str, tuple[float, bytes]] = {}
        self._ends: list[tuple[float, str]] = []

    def get(self, key: str, at: float) -> bytes | None:
        entry = self._entries.get(key)
        return entry[1] if entry and entry[0] > at else None

    def put(self, key: str, value: bytes, expires: float) -> None:
        self._entries[key] = (expires, value)
        heapq.heappush(self._ends, (expires, key))

    def expire(self, at: float, most: int = 1_000) -> None:
        while self._ends and most > 0 and (self._ends[0][0] <= at or len(self._ends) > self._most):
            most -= 1
            end, key = heapq.heappop(self._ends)
            entry = self._entries.get(key)
            if entry and entry[0] <= end:
                del self._entries[key]

    def __len__(self) -> int:
        return len(self._entries)
