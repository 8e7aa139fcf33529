"""A server in a process of its own, started on a folder: how soon it is ready and what it weighs."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawlguide.lab.speed import inside, outside, queue
from crawlguide.lab.speed.frontier import filled
from crawlguide.testing import ManualClock
from crawlguide.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

READY_WITHIN_S, REST_WITHIN_S = 300.0, 60
AT_REST = 0.05  # of a core
CLOCK_TICKS = 100.0  # per second, on every Linux there is


@dataclass(frozen=True)
class Server:
    process: subprocess.Popen[bytes]
    port: int
    ready_s: float  # from the start of the process
    opened_s: float  # of these, for opening the folder

    def cpu_s(self) -> float:
        """User and system time of all its threads so far."""
        numbers = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(numbers[11]) + int(numbers[12])) / CLOCK_TICKS

    def memory_bytes(self) -> int:
        """Memory of its own; what the system caches of files is not counted."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1_024 for line in lines if line.startswith("RssAnon:"))

    def come_to_rest(self) -> None:
        """Wait until RocksDB has sorted what the filling left behind: the requests to come are not to pay for it."""
        for _ in range(REST_WITHIN_S):
            before = self.cpu_s()
            time.sleep(1.0)
            if self.cpu_s() - before < AT_REST:
                return


@contextmanager
def serving(folder: Path, scratch: Path) -> Iterator[Server]:
    """`crawlguide serve`, once it answers. It is killed at the end, also if whoever measures it is interrupted."""
    ready = scratch / "ready.json"
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-m", "crawlguide", "serve", "--data", str(folder), "--port", "0"]
    began = time.monotonic()
    process = subprocess.Popen([*command, "--ready-file", str(ready)], stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        while not ready.exists():
            if process.poll() is not None or time.monotonic() - began > READY_WITHIN_S:
                raise RuntimeError("the server did not become ready")
            time.sleep(0.005)
        said = json.loads(ready.read_text())
        yield Server(process, said["port"], time.monotonic() - began, said["opened_s"])
    finally:
        process.kill()
        process.wait()


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


# The whole measurement, on one core, as one document.

QUEUED = 100_000  # URLs in and out, as the peers do


@dataclass(frozen=True)
class Plan:
    sizes: Sequence[int]
    hosts: int
    rounds: int
    scratch: Path
    said: Callable[[str], None]


def document(plan: Plan, peers: Callable[[], list[dict[str, Any]]] | None) -> dict[str, Any]:
    """Measure everything; `peers` measures other people's frontiers, where they can be installed."""
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    rows = [size_measured(plan, size, _empty_server_bytes(plan)) for size in plan.sizes]
    queues = [asyncio.run(queue.measured(_fresh(plan, "queue"), min(QUEUED, max(plan.sizes)), plan.hosts))]
    queues += peers() if peers else []
    machine = {"processor": platform.processor() or platform.machine(), "cores_used": 1}
    return {"version": __version__, "machine": machine, "hosts": plan.hosts, "sizes": rows, "queues": queues}


def size_measured(plan: Plan, size: int, empty_bytes: int) -> dict[str, Any]:
    """One size: in process, then a server on the same folder, which is killed and started again."""
    folder = _fresh(plan, f"frontier-{size}")
    plan.said(f"{size:,} URLs: filling a folder, asking and telling in process")
    row: dict[str, Any] = {"urls": size} | asyncio.run(_inside(folder, plan, size))
    plan.said(f"{size:,} URLs: over HTTP")
    with serving(folder, plan.scratch) as server:
        row |= {"open_clean_s": server.opened_s, "ready_clean_s": server.ready_s}
        row |= {"memory_bytes_per_url": (server.memory_bytes() - empty_bytes) / size}
        row |= {"disk_bytes_per_url": folder_bytes(folder) / size}
        server.come_to_rest()
        row |= asyncio.run(outside.measured(server, plan.rounds))
    with serving(folder, plan.scratch) as again:
        row |= {"open_killed_s": again.opened_s, "ready_killed_s": again.ready_s}
    shutil.rmtree(folder)
    return row


async def _inside(folder: Path, plan: Plan, size: int) -> dict[str, Any]:
    clock = ManualClock()
    guide = await filled(folder, size, plan.hosts, clock)
    await asyncio.sleep(3)  # what the filling left to do in the background is not the asks' fault
    try:
        return await inside.measured(guide, clock, size, plan.rounds)
    finally:
        await guide.close()


def _empty_server_bytes(plan: Plan) -> int:
    """What a server weighs that knows nothing."""
    with serving(_fresh(plan, "empty"), plan.scratch) as server:
        return server.memory_bytes()


def _fresh(plan: Plan, name: str) -> Path:
    folder = plan.scratch / name
    shutil.rmtree(folder, ignore_errors=True)
    return folder
