"""A server in a process of its own, started on a folder: how soon it is ready and how much memory it takes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

READY_WITHIN_S, IDLE_WITHIN_S = 300.0, 60
IDLE_CPU = 0.05  # of a core
CLOCK_TICKS = 100.0  # per second, on every Linux there is


@dataclass(frozen=True)
class Server:
    process: subprocess.Popen[bytes]
    port: int
    ready_s: float  # from the start of the process
    opened_s: float  # of these, for opening the folder
    ready: dict[str, Any]  # what the ready file says

    def cpu_s(self) -> float:
        """User and system time of all its threads so far."""
        numbers = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(numbers[11]) + int(numbers[12])) / CLOCK_TICKS

    def cpu_ns(self) -> int:
        """The same of the threads that live, and finer: for what takes less than some hundredths of a second."""
        tasks = Path(f"/proc/{self.process.pid}/task")
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir())

    def memory_bytes(self) -> int:
        """Memory of its own; what the system caches of files is not counted."""
        return self._status_bytes("RssAnon")

    def resident_bytes(self) -> int:
        """All memory it has, that of mapped files included."""
        return self._status_bytes("VmRSS")

    def _status_bytes(self, name: str) -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1_024 for line in lines if line.startswith(f"{name}:"))

    def wait_until_idle(self) -> None:
        """Wait until RocksDB has sorted what the filling left behind: the requests to come are not to pay for it."""
        for _ in range(IDLE_WITHIN_S):
            before = self.cpu_s()
            time.sleep(1.0)
            if self.cpu_s() - before < IDLE_CPU:
                return


@contextmanager
def serving(
    folder: Path, scratch: Path, *options: str, command: Sequence[str] = (sys.executable, "-m", "crawlguide")
) -> Iterator[Server]:
    """`crawlguide serve`, once it answers. It is killed at the end, also if whoever measures it is interrupted."""
    ready = scratch / "ready.json"
    ready.unlink(missing_ok=True)
    arguments = ["serve", "--data", str(folder), "--port", "0", *options, "--ready-file", str(ready)]
    began = time.monotonic()
    process = subprocess.Popen([*command, *arguments], stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        while not ready.exists():
            if process.poll() is not None or time.monotonic() - began > READY_WITHIN_S:
                raise RuntimeError("the server did not become ready")
            time.sleep(0.005)
        ports = json.loads(ready.read_text())
        yield Server(process, ports["port"], time.monotonic() - began, ports["opened_s"], ports)
    finally:
        process.kill()
        process.wait()
