"""A worker process that evaluates rules: a line of JSON in, a line out; it is killed when it exceeds its time."""

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

    from crawlguide.policy.rules.engine import Bundle

WORKER = Path(__file__).with_name("worker.py")
START_S = 10.0
PATIENCE = 10  # times the limit by the clock, where others keep the processors busy
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PIECE = 65_536


class RulesFailed(CrawlGuideError):
    """The rules could not be read or did not answer in time; `message` says why."""


class Worker:
    """Blocking: call it in a thread. After a failure it is dead."""

    def __init__(self, bundle: Bundle) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own file
            [sys.executable, "-I", str(WORKER)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}, cwd="/",
        )  # fmt: skip
        self._in, self._out = (pipe.fileno() for pipe in (self._process.stdin, self._process.stdout) if pipe)
        os.set_blocking(self._in, False)
        self.ask(msgspec.json.encode(bundle), START_S)

    def ask(self, question: bytes, within_s: float) -> dict[str, str]:
        """The URLs that are denied, with the reasons that the rules give; raises `RulesFailed`.

        The limit is on processor time; by the clock it may take `PATIENCE` times as long.
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
        reply: Mapping[str, Any] = msgspec.json.decode(answer) if answer else {"error": "the process ended"}
        if "error" in reply:
            self.close()
            raise RulesFailed(str(reply["error"]))
        denied: dict[str, str] = reply["deny"]
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
    """A limit on the processor time that a process may use from now on."""

    def __init__(self, pid: int, limit_s: float) -> None:
        self._pid, self._limit_s = pid, limit_s
        self._used, self._began = used_s(pid), time.monotonic()

    def rest(self) -> float:
        """How long to wait before checking again; raises `TimeoutError` when the limit is reached."""
        passed = time.monotonic() - self._began
        rest = self._limit_s - (used_s(self._pid) - self._used if passed >= self._limit_s else passed)
        if rest <= 0 or passed >= PATIENCE * self._limit_s:
            raise TimeoutError
        return max(rest, TICK_S)


def used_s(pid: int) -> float:
    """Seconds of processor time that a process has used; infinite for one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("inf")
    return (int(fields[11]) + int(fields[12])) * TICK_S
