"""A shelf on disk: what was put and not yet written is seen before what was written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from crawlguide.core.errors import CrawlGuideError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.store.embedded.disk import Disk


class DiskShelf:
    """The keys of one kind below one prefix in one family of the database."""

    def __init__(self, disk: Disk, family: str, prefix: bytes) -> None:
        self.family = family
        self._disk, self._prefix = disk, prefix
        self._reading = _Reading(disk)
        self.pending: dict[bytes, bytes | None] = {}

    def get(self, key: bytes) -> bytes | None:
        full = self._prefix + key
        if full in self.pending:
            return self.pending[full]
        with self._reading:
            return self._disk.get(self.family, full)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        prefix, pending = self._prefix, self.pending
        full = [prefix + key for key in keys]
        with self._reading:
            found = self._disk.get_many(self.family, full)
        return [pending.get(key, value) for key, value in zip(full, found, strict=True)] if pending else found

    def put(self, key: bytes, value: bytes) -> None:
        self.pending[self._prefix + key] = value
        self._disk.changed[self] = None

    def delete(self, key: bytes) -> None:
        self.pending[self._prefix + key] = None
        self._disk.changed[self] = None

    def is_below(self, prefix: bytes) -> bool:
        return self._prefix.startswith(prefix)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Everything, in the order of the keys: for opening, when nothing is pending."""
        cut = len(self._prefix)
        for key, value in self._disk.items(self.family, self._prefix):
            yield key[cut:], value

    def keys_below(self, end: bytes, most: int) -> list[bytes]:
        """Up to `most` of the first keys that are smaller than `end`, written or not."""
        cut = len(self._prefix)
        found: list[bytes] = []
        with self._reading:
            for key, _ in self._disk.items(self.family, self._prefix):
                if key[cut:] >= end or len(found) == most:
                    break
                if self.pending.get(key, b"") is not None:
                    found.append(key[cut:])
        return found


class _Reading:
    """Whoever was in the middle of a change when reading failed has left half of it in memory."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, _: object) -> None:
        if isinstance(problem, CrawlGuideError):
            self._disk.torn = True


def beyond(prefix: bytes) -> bytes:
    """The first key behind all keys that begin with this prefix."""
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")
