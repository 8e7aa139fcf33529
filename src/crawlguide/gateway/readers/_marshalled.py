"""Plain data out of bytes that `marshal` wrote, without `marshal`: that one crashes on bytes made to crash it.

Format: Python/marshal.c, versions 2 to 5 for plain data. A type is a letter; its top bit says that the value may be
referred to later, by its number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crawlguide.core.errors import DataError
from crawlguide.gateway.readers._bytes import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH = 100
MAX_DIGITS = 64

_REFERABLE = 0x80
_END = object()


def plain(marshalled: bytes) -> object:
    """What was marshalled, sets as lists, and of dictionaries only what stands under a text.

    Raises `DataError` with the reason for bytes that hold anything else.
    """
    try:
        return Reader(Cursor(marshalled)).value()
    except (ValueError, IndexError) as wrong:  # cut off or not UTF-8; no such reference
        raise DataError(f"marshal: malformed: {wrong}") from wrong


@dataclass
class Reader:
    """How far the bytes are read, and the values that may be referred to."""

    cursor: Cursor
    depth: int = 0
    values: list[object] = field(default_factory=list)

    def value(self) -> object:
        letter = self.cursor.unsigned(1)
        step = _STEPS.get(letter & ~_REFERABLE)
        if step is None:
            raise DataError(f"marshal: byte {self.cursor.position - 1}: expected plain data, got type {letter:#04x}")
        if not letter & _REFERABLE:
            return step(self)
        number = len(self.values)
        self.values.append(None)  # a container has its number before what is in it
        self.values[number] = step(self)
        return self.values[number]

    def long(self) -> int:
        """Digits of 15 bits, the lowest first; their count is negative for a negative number."""
        count = self.cursor.signed(4)
        if abs(count) > MAX_DIGITS:
            raise ValueError(f"expected a number of at most {MAX_DIGITS} digits")
        digits = self.cursor.taken(2 * abs(count))
        size = 0
        for place in range(abs(count)):
            size |= int.from_bytes(digits[2 * place : 2 * place + 2], "little") << 15 * place
        return -size if count < 0 else size

    def sequence(self, count: int) -> list[object]:
        self._go_deeper()
        found = [self.value() for _ in range(count)]
        self.depth -= 1
        return found

    def dictionary(self) -> dict[str, object]:
        self._go_deeper()
        found = {}
        while (key := self.value()) is not _END:
            value = self.value()
            if isinstance(key, str):
                found[key] = value
        self.depth -= 1
        return found

    def _go_deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ValueError(f"expected at most {MAX_DEPTH} levels")


_STEPS: dict[int, Callable[[Reader], object]] = {
    ord("N"): lambda _: None,
    ord("T"): lambda _: True,
    ord("F"): lambda _: False,
    ord("0"): lambda _: _END,
    ord("i"): lambda reader: reader.cursor.signed(4),
    ord("l"): Reader.long,
    ord("g"): lambda reader: reader.cursor.double("<d"),
    ord("s"): lambda reader: reader.cursor.run(4),
    ord("u"): lambda reader: reader.cursor.text(4),
    ord("t"): lambda reader: reader.cursor.text(4),
    ord("a"): lambda reader: reader.cursor.text(4),
    ord("A"): lambda reader: reader.cursor.text(4),
    ord("z"): lambda reader: reader.cursor.text(1),
    ord("Z"): lambda reader: reader.cursor.text(1),
    ord("("): lambda reader: tuple(reader.sequence(reader.cursor.unsigned(4))),
    ord(")"): lambda reader: tuple(reader.sequence(reader.cursor.unsigned(1))),
    ord("["): lambda reader: reader.sequence(reader.cursor.unsigned(4)),
    ord("<"): lambda reader: reader.sequence(reader.cursor.unsigned(4)),
    ord(">"): lambda reader: reader.sequence(reader.cursor.unsigned(4)),
    ord("{"): Reader.dictionary,
    ord("r"): lambda reader: reader.values[reader.cursor.unsigned(4)],
}
