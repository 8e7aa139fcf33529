"""Plain data out of a pickle, without unpickling it.

A pickle is a program, and `pickle` runs it: it may import and call anything. Here only the opcodes that build plain
data are known; any other is refused by its name, so there is nothing that could import, call or build. Nor is anything
hashed but text: to hash tuples that are nested deeply enough overflows the stack.
Opcodes: https://docs.python.org/3/library/pickletools.html, those that protocols 3 to 5 write for plain data.
"""

from __future__ import annotations

import pickletools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crawlguide.core.errors import DataError
from crawlguide.gateway.readers._bytes import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable

_STOP, _STACK_GLOBAL = b".", b"\x93"
_NAMES = {opcode.code: opcode.name for opcode in pickletools.opcodes}


def plain(pickle: bytes) -> object:
    """What the pickle holds, sets as lists, and of dictionaries only what stands under a text.

    Raises `DataError` with the reason for a pickle that holds anything else.
    """
    machine = Machine(Cursor(pickle))
    try:
        while (opcode := machine.cursor.taken(1)) != _STOP:
            step = _STEPS.get(opcode)
            if step is None:
                raise DataError(f"pickle: expected plain data, got {machine.what(opcode)}")
            step(machine)
        return machine.stack.pop()
    except (ValueError, IndexError, KeyError) as wrong:  # cut off or of the wrong kind; an empty stack; no such memo
        raise DataError(f"pickle: malformed: {wrong}") from wrong


@dataclass
class Machine:
    """The stack that a pickle works on, and the values it has put aside."""

    cursor: Cursor
    stack: list[Any] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)

    def what(self, opcode: bytes) -> str:
        """A name for what is not plain; a class or function is about to be named by its module and its name."""
        if opcode == _STACK_GLOBAL and all(isinstance(part, str) for part in self.stack[-2:]):
            return repr(".".join(self.stack[-2:])[:80])
        return _NAMES.get(opcode.decode("latin-1"), repr(opcode))

    def skip(self, size: int) -> None:
        self.cursor.taken(size)

    def push(self, value: object) -> None:
        self.stack.append(value)

    def popped(self, count: int) -> list[Any]:
        """The top values, in the order in which they were pushed."""
        first = len(self.stack) - count
        if not 0 <= first <= len(self.stack):
            raise ValueError("the stack is too short")
        taken = self.stack[first:]
        del self.stack[first:]
        return taken

    def since_mark(self) -> list[Any]:
        return self.popped(len(self.stack) - self.marks.pop())

    def remember(self, number: int) -> None:
        self.memo[number] = self.stack[-1]

    def extend(self, values: list[Any]) -> None:
        _expect(list, self.stack[-1]).extend(values)

    def update(self, values: list[Any]) -> None:
        pairs = zip(values[::2], values[1::2], strict=True)
        _expect(dict, self.stack[-1]).update((key, value) for key, value in pairs if isinstance(key, str))


def _expect(kind: type[Any], value: object) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"expected a {kind.__name__}, got a {type(value).__name__}")  # noqa: TRY004 - malformed, as all
    return value


_STEPS: dict[bytes, Callable[[Machine], None]] = {
    b"\x80": lambda machine: machine.skip(1),  # PROTO
    b"\x95": lambda machine: machine.skip(8),  # FRAME
    b"N": lambda machine: machine.push(None),
    b"\x88": lambda machine: machine.push(True),
    b"\x89": lambda machine: machine.push(False),
    b"J": lambda machine: machine.push(machine.cursor.signed(4)),  # BININT
    b"K": lambda machine: machine.push(machine.cursor.unsigned(1)),  # BININT1
    b"M": lambda machine: machine.push(machine.cursor.unsigned(2)),  # BININT2
    b"\x8a": lambda machine: machine.push(machine.cursor.signed(machine.cursor.unsigned(1))),  # LONG1
    b"G": lambda machine: machine.push(machine.cursor.double(">d")),  # BINFLOAT
    b"\x8c": lambda machine: machine.push(machine.cursor.text(1)),  # SHORT_BINUNICODE
    b"X": lambda machine: machine.push(machine.cursor.text(4)),  # BINUNICODE
    b"\x8d": lambda machine: machine.push(machine.cursor.text(8)),  # BINUNICODE8
    b"C": lambda machine: machine.push(machine.cursor.run(1)),  # SHORT_BINBYTES
    b"B": lambda machine: machine.push(machine.cursor.run(4)),  # BINBYTES
    b"\x8e": lambda machine: machine.push(machine.cursor.run(8)),  # BINBYTES8
    b"}": lambda machine: machine.push({}),  # EMPTY_DICT
    b"]": lambda machine: machine.push([]),  # EMPTY_LIST
    b"\x8f": lambda machine: machine.push([]),  # EMPTY_SET
    b")": lambda machine: machine.push(()),  # EMPTY_TUPLE
    b"(": lambda machine: machine.marks.append(len(machine.stack)),  # MARK
    b"t": lambda machine: machine.push(tuple(machine.since_mark())),  # TUPLE
    b"\x85": lambda machine: machine.push(tuple(machine.popped(1))),  # TUPLE1
    b"\x86": lambda machine: machine.push(tuple(machine.popped(2))),  # TUPLE2
    b"\x87": lambda machine: machine.push(tuple(machine.popped(3))),  # TUPLE3
    b"\x91": lambda machine: machine.push(machine.since_mark()),  # FROZENSET
    b"a": lambda machine: machine.extend(machine.popped(1)),  # APPEND
    b"e": lambda machine: machine.extend(machine.since_mark()),  # APPENDS
    b"\x90": lambda machine: machine.extend(machine.since_mark()),  # ADDITEMS
    b"s": lambda machine: machine.update(machine.popped(2)),  # SETITEM
    b"u": lambda machine: machine.update(machine.since_mark()),  # SETITEMS
    b"\x94": lambda machine: machine.remember(len(machine.memo)),  # MEMOIZE
    b"q": lambda machine: machine.remember(machine.cursor.unsigned(1)),  # BINPUT
    b"r": lambda machine: machine.remember(machine.cursor.unsigned(4)),  # LONG_BINPUT
    b"h": lambda machine: machine.push(machine.memo[machine.cursor.unsigned(1)]),  # BINGET
    b"j": lambda machine: machine.push(machine.memo[machine.cursor.unsigned(4)]),  # LONG_BINGET
}
