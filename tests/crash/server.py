"""The server as a process of its own, which can be killed and started again on the same folder and port."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Coroutine

SCRIPT = (str(Path(sys.executable).parent / "crawlguide"),)
MANY_SNAPSHOTS = (sys.executable, "-m", "tests.crash.launch")
PATH = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
MEMORY = ":memory:"
FAULTPOINT = "CRAWLGUIDE_FAULTPOINT"
READY_WITHIN_S = 120.0  # the first start on a machine compiles the kernels
ENDS_WITHIN_S = 30.0
LOOKED_EVERY_S = 0.01
AND_NOTE_ITS_PROCESS = 'echo $$ > "$0" && exec "$@"'


class ServerEnded(Exception):
    """The server ended before it was ready; `code` is its exit code."""

    def __init__(self, code: int | None, said: str) -> None:
        super().__init__(f"the server ended with {code} before it was ready: {said[-2_000:]}")
        self.code = code


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass
class Server:
    """`around` is a command that runs the server, such as a tracer; `data` the folder or :memory:."""

    folder: Path
    data: str
    program: tuple[str, ...] = SCRIPT
    around: tuple[str, ...] = ()
    port: int = field(default_factory=free_port)
    process: asyncio.subprocess.Process | None = None

    async def start(self, faultpoint: str | None = None) -> float:
        """Seconds until it was ready. Raises `ServerEnded` if it never was."""
        began = time.monotonic()
        self._ready.unlink(missing_ok=True)
        environment = os.environ | {"PYTHONPATH": PATH} | ({FAULTPOINT: faultpoint} if faultpoint else {})
        with self._stderr.open("ab") as said:
            self.process = await asyncio.create_subprocess_exec(
                *self._command(), stdout=said, stderr=said, cwd=self.folder, env=environment
            )
        while not self._ready.exists():
            if self.process.returncode is not None or time.monotonic() - began > READY_WITHIN_S:
                raise ServerEnded(self.process.returncode, self.said())
            await asyncio.sleep(LOOKED_EVERY_S)
        return time.monotonic() - began

    def _command(self) -> list[str]:
        serve = [*self.program, "serve", "--data", self.data, "--port", str(self.port)]
        noted = ["sh", "-c", AND_NOTE_ITS_PROCESS, str(self._process_file)]
        return [*self.around, *noted, *serve, "--ready-file", str(self._ready)]

    async def kill(self) -> None:
        """No time for last words."""
        await self.end(signal.SIGKILL)

    async def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Signal it and wait; the exit code."""
        if self.process is None:
            return 0
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it was quicker
                self._signal(self.process, how)
        return await asyncio.wait_for(self.process.wait(), ENDS_WITHIN_S)

    def _signal(self, process: asyncio.subprocess.Process, how: signal.Signals) -> None:
        if self.around:  # the process that was started is the one around
            os.kill(int(self._process_file.read_text()), how)
        else:
            process.send_signal(how)

    async def ended_before(self, other: Coroutine[None, None, None]) -> int | None:
        """Its exit code if it ends by itself before something else is done."""
        done = asyncio.ensure_future(other)
        if self.process is not None:
            ended = asyncio.ensure_future(self.process.wait())
            await asyncio.wait({ended, done}, return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
        done.cancel()
        return None if self.process is None else self.process.returncode

    def said(self) -> str:
        return self._stderr.read_text(errors="replace")

    @property
    def _ready(self) -> Path:
        return self.folder / "ready.json"

    @property
    def _stderr(self) -> Path:
        return self.folder / "stderr.txt"

    @property
    def _process_file(self) -> Path:
        return self.folder / "process.txt"
