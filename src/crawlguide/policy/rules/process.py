"""A worker with rules in it, talked to in lines and within time; it is killed when it does not keep to it."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.core.errors import CrawlGuideError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.policy.rules.engine import Source

WORKER = Path(__file__).with_name("worker.py")
START_S = 10.0
AT_MOST = 10  # times the limit, when processors are busy with something else
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PIECE = 65_536


class RulesFailed(CrawlGuideError):
    """The rules could not be read or did not answer in time; `message` says why."""


class Worker:
    """Blocking: call it in a thread. After a failure it is dead."""

    def __init__(self, source: Source) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own file
            [sys.executable, "-I", str(WORKER)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}, cwd="/",
        )  # fmt: skip
        self._in, self._out = (pipe.fileno() for pipe in (self._process.stdin, self._process.stdout) if pipe)
        os.set_blocking(self._in, False)
        self.ask(msgspec.json.encode(source), START_S)

    def ask(self, question: bytes, within_s: float) -> dict[str, str]:
        """What is denied, with the reasons that the rules give; raises `RulesFailed`.

        The limit is on what the rules use of a processor; where others keep it busy they may take some times as long.
        """
        limit = Limit(self._process.pid, within_s)
        try:
            self._send(question + b"\n", limit)
            answer = self._line(limit)
        except (OSError, TimeoutError) as problem:
            self.close()
            raise RulesFailed(str(problem) or f"no answer within {within_s * 1_000:.0f} ms") from None
        return self._denied(answer)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()

    def _denied(self, answer: bytes) -> dict[str, str]:
        said: Mapping[str, Any] = msgspec.json.decode(answer) if answer else {"error": "the process ended"}
        if "error" in said:
            self.close()
            raise RulesFailed(str(said["error"]))
        denied: dict[str, str] = said["deny"]
        return denied

    def _send(self, message: bytes, limit: Limit) -> None:
        left = memoryview(message)
        while left:
            _, ready, _ = select.select([], [self._in], [], limit.rest())
            if ready:
                left = left[os.write(self._in, left[:PIECE]) :]

    def _line(self, limit: Limit) -> bytes:
        pieces: list[bytes] = []
        while not (pieces and pieces[-1].endswith(b"\n")):
            ready, _, _ = select.select([self._out], [], [], limit.rest())
            piece = os.read(self._out, PIECE) if ready else b""
            if ready and not piece:
                return b""
            pieces.append(piece)
        return b"".join(pieces)


class Limit:
    """Of the time that a process may use from now on."""

    def __init__(self, pid: int, limit_s: float) -> None:
        self._pid, self._limit_s = pid, limit_s
        self._used, self._began = used_s(pid), time.monotonic()

    def rest(self) -> float:
        """How long to wait before looking again; raises `TimeoutError` when it is over."""
        passed = time.monotonic() - self._began
        rest = self._limit_s - (used_s(self._pid) - self._used if passed >= self._limit_s else passed)
        if rest <= 0 or passed >= AT_MOST * self._limit_s:
            raise TimeoutError
        return max(rest, TICK_S)


def used_s(pid: int) -> float:
    """Seconds of a processor that a process has used; all there are for one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("inf")
    return (int(fields[11]) + int(fields[12])) * TICK_S
