"""Bytes that end by themselves, on disk: each entry also has a place in the order of ends."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crawlguide.store.embedded.shelf import DiskShelf

INSTANT = struct.Struct(">d")  # bytes of instants after 1970 sort as the instants do


class DiskExpiring:
    def __init__(self, entries: DiskShelf, ends: DiskShelf) -> None:
        self._entries, self._ends = entries, ends

    def get(self, key: str, at: float) -> bytes | None:
        entry = self._entries.get(key.encode())
        if entry is None or INSTANT.unpack_from(entry)[0] <= at:
            return None
        return entry[INSTANT.size :]

    def put(self, key: str, value: bytes, expires: float) -> None:
        end, name = INSTANT.pack(max(expires, 0.0)), key.encode()
        self._entries.put(name, end + value)
        self._ends.put(end + name, b"")

    def expire(self, at: float, most: int = 1_000) -> None:
        if most < FEW:  # whoever clears a few on the way to something else leaves it to upkeep here
            return
        for end in self._ends.keys_below(INSTANT.pack(at) + b"\xff" * 8, most):
            self._ends.delete(end)
            name = end[INSTANT.size :]
            entry = self._entries.get(name)
            if entry is not None and entry[: INSTANT.size] <= end[: INSTANT.size]:
                self._entries.delete(name)


FEW = 100
