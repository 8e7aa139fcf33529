"""What clients saw, as JSON lines: each call invoked, then answered, refused, or nobody knows.

The checker believes this file and not the server. Instants are seconds since 1970 that never run backwards.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, Self

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

LOOKED_EVERY_S = 0.01


class Invoke(Struct, frozen=True, tag_field="type", tag="invoke"):
    """A client sends a call, for the first time or once more."""

    operation: str
    at: float
    kind: str
    crawl: str
    client: str
    body: dict[str, Any]


class Ok(Struct, frozen=True, tag_field="type", tag="ok"):
    """The server answered, so it has promised."""

    operation: str
    at: float
    answer: dict[str, Any]


class Fail(Struct, frozen=True, tag_field="type", tag="fail"):
    """The server refused."""

    operation: str
    at: float
    status: int
    answer: str


class Unknown(Struct, frozen=True, tag_field="type", tag="unknown"):
    """No answer came: the call may have happened or not."""

    operation: str
    at: float
    why: str


class Note(Struct, frozen=True, tag_field="type", tag="note"):
    """What was done to the server: killed, ready, healed."""

    at: float
    what: str


Event = Invoke | Ok | Fail | Unknown | Note


class History:
    """Writes events as they happen."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answers = 0  # so far
        self._file = path.open("ab")
        self._ahead = time.time() - time.monotonic()

    def now(self) -> float:
        return self._ahead + time.monotonic()

    def write(self, event: Event) -> None:
        self.answers += isinstance(event, Ok)
        self._file.write(msgspec.json.encode(event) + b"\n")

    async def reaches(self, answers: int) -> None:
        """On a busy machine a moment is too short to promise anything that could be broken."""
        while self.answers < answers:  # noqa: ASYNC110 - there is nothing to wait for but a count
            await asyncio.sleep(LOOKED_EVERY_S)

    def note(self, what: str) -> None:
        self.write(Note(self.now(), what))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


@dataclass
class Operation:
    """Everything one call went through, retries and repetitions included: they share its id and its body."""

    invoke: Invoke
    answers: list[Ok] = field(default_factory=list)
    unknowns: list[Unknown] = field(default_factory=list)
    fails: list[Fail] = field(default_factory=list)

    @property
    def sent(self) -> float:
        return self.invoke.at

    @property
    def answered(self) -> float:
        """When its first answer came; infinite if none did."""
        return self.answers[0].at if self.answers else inf

    @property
    def retried(self) -> bool:
        """Whether it may have been carried out before the attempt that was answered first."""
        return any(unknown.at <= self.answered for unknown in self.unknowns)


def load(path: Path) -> tuple[list[Operation], list[Note]]:
    """The operations in the order of their first call, and what was done to the server."""
    operations: dict[str, Operation] = {}
    notes: list[Note] = []
    decoder = msgspec.json.Decoder(Event)
    for line in path.read_bytes().splitlines():
        event = decoder.decode(line)
        if isinstance(event, Note):
            notes.append(event)
        else:
            _add(operations, event)
    return list(operations.values()), notes


def _add(operations: dict[str, Operation], event: Invoke | Ok | Fail | Unknown) -> None:
    match event:
        case Invoke():
            operations.setdefault(event.operation, Operation(event))
        case Ok():
            operations[event.operation].answers.append(event)
        case Fail():
            operations[event.operation].fails.append(event)
        case Unknown():
            operations[event.operation].unknowns.append(event)
