"""A trace of system calls, read back: which thread called what on which file, and between which lines it ran.

Lines are better than instants: the tracer stops a thread at the begin and at the end of each call and writes the line
before it lets the thread go, so what caused something always stands above it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

TRACED = ("write", "pwrite64", "writev", "sendto", "sendmsg", "fsync", "fdatasync")
_CALL = re.compile(r"(?P<thread>\d+) +[\d.]+ (?P<name>\w+)\(\d+<(?P<target>TCP\w*:\[[^\]]*\]|[^>]*)>(?P<rest>.*)")
_RESUMED = re.compile(r"(?P<thread>\d+) +[\d.]+ <\.\.\. (?P<name>\w+) resumed>(?P<rest>.*)")
_RESULT = re.compile(r"\) += (?P<result>-?\d+)(?P<words>[^\"]*)$")
_UNFINISHED = "<unfinished ...>"
_PRETENDED = "INJECTED"  # the tracer answered in place of the kernel


@dataclass(frozen=True)
class SystemCall:
    """`target` is the file or connection; it ran from line `began` to line `ended`."""

    thread: str
    name: str
    target: str
    text: str
    began: int
    ended: float = inf
    succeeded: bool = False

    @property
    def is_sync(self) -> bool:
        return self.name in ("fsync", "fdatasync")

    @property
    def is_sent(self) -> bool:
        return self.target.startswith("TCP")


def read(lines: Iterable[str]) -> list[SystemCall]:
    """All calls in the order in which they began; one that never ended has no end."""
    calls: list[SystemCall] = []
    open_calls: dict[str, int] = {}  # by thread: a thread is in one call at a time
    for number, line in enumerate(lines):
        if begun := _CALL.match(line):
            call = SystemCall(begun["thread"], begun["name"], begun["target"], begun["rest"], number)
            if begun["rest"].endswith(_UNFINISHED):
                open_calls[call.thread] = len(calls)
                calls.append(call)
            else:
                calls.append(_ended(call, begun["rest"], number))
        elif (resumed := _RESUMED.match(line)) and resumed["thread"] in open_calls:
            place = open_calls.pop(resumed["thread"])
            calls[place] = _ended(calls[place], resumed["rest"], number)
    return calls


def _ended(call: SystemCall, rest: str, line: int) -> SystemCall:
    result = _RESULT.search(rest)
    succeeded = result is not None and int(result["result"]) >= 0 and _PRETENDED not in result["words"]
    return replace(call, ended=line, succeeded=succeeded)
