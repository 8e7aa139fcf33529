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

    from crawlguide.policy.rules.source import Source

WORKER = Path(__file__).with_name("worker.py")
START_S = 10.0
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
        """What is denied, with the reasons that the rules give; raises `RulesFailed`."""
        deadline = time.monotonic() + within_s
        try:
            self._send(question + b"\n", deadline)
            answer = self._line(deadline)
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

    def _send(self, message: bytes, deadline: float) -> None:
        left = memoryview(message)
        while left:
            _, ready, _ = select.select([], [self._in], [], _rest(deadline))
            if ready:
                left = left[os.write(self._in, left[:PIECE]) :]

    def _line(self, deadline: float) -> bytes:
        pieces: list[bytes] = []
        while not (pieces and pieces[-1].endswith(b"\n")):
            ready, _, _ = select.select([self._out], [], [], _rest(deadline))
            piece = os.read(self._out, PIECE) if ready else b""
            if ready and not piece:
                return b""
            pieces.append(piece)
        return b"".join(pieces)


def _rest(deadline: float) -> float:
    rest = deadline - time.monotonic()
    if rest <= 0:
        raise TimeoutError
    return rest
