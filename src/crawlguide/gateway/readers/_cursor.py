"""Bytes of a stranger, taken from the front: never beyond their end, and nothing is set aside for a size they claim."""

from __future__ import annotations

import struct
from dataclasses import dataclass


@dataclass
class Cursor:
    """What is left to read. Everything raises `ValueError` where the bytes end too early or are not UTF-8."""

    content: bytes
    position: int = 0

    def taken(self, size: int) -> bytes:
        start, end = self.position, self.position + size
        if not start <= end <= len(self.content):
            raise ValueError(f"byte {start}: expected {size} more bytes, got {len(self.content) - start}")
        self.position = end
        return self.content[start:end]

    def unsigned(self, size: int) -> int:
        return int.from_bytes(self.taken(size), "little")

    def signed(self, size: int) -> int:
        return int.from_bytes(self.taken(size), "little", signed=True)

    def double(self, form: str) -> float:
        return float(struct.unpack(form, self.taken(8))[0])

    def run(self, size_of_size: int) -> bytes:
        """Bytes after their own number."""
        return self.taken(self.unsigned(size_of_size))

    def text(self, size_of_size: int) -> str:
        return self.run(size_of_size).decode()
