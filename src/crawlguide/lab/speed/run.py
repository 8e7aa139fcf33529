"""The whole measurement of `crawlguide bench`, on one core, as one JSON document."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crawlguide.lab.speed.add_next import measure_add_next
from crawlguide.lab.speed.frontier import filled_guide
from crawlguide.lab.speed.in_process import measure_in_process
from crawlguide.lab.speed.over_http import measure_over_http
from crawlguide.lab.speed.server import serving
from crawlguide.testing import ManualClock
from crawlguide.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

ADD_NEXT_URLS = 100_000  # URLs in and out, as the peers do


@dataclass(frozen=True)
class Plan:
    sizes: Sequence[int]
    hosts: int
    rounds: int
    scratch: Path
    progress: Callable[[str], None]


def document(plan: Plan, peers: Callable[[], list[dict[str, Any]]] | None) -> dict[str, Any]:
    """Measure everything; `peers` measures other people's frontiers, where they can be installed."""
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    rows = [measure_size(plan, size, _empty_server_bytes(plan)) for size in plan.sizes]
    count = min(ADD_NEXT_URLS, max(plan.sizes))
    queues = [asyncio.run(measure_add_next(_fresh_folder(plan, "queue"), count, plan.hosts))]
    queues += peers() if peers else []
    machine = {"processor": platform.processor() or platform.machine(), "cores_used": 1}
    return {"version": __version__, "machine": machine, "hosts": plan.hosts, "sizes": rows, "queues": queues}


def measure_size(plan: Plan, size: int, empty_bytes: int) -> dict[str, Any]:
    """One size: in process, then a server on the same folder, which is killed and started again."""
    folder = _fresh_folder(plan, f"frontier-{size}")
    plan.progress(f"{size:,} URLs: filling a folder, asking and telling in process")
    row: dict[str, Any] = {"urls": size} | asyncio.run(_in_process(folder, plan, size))
    plan.progress(f"{size:,} URLs: over HTTP")
    with serving(folder, plan.scratch) as server:
        row |= {"open_clean_s": server.opened_s, "ready_clean_s": server.ready_s}
        row |= {"memory_bytes_per_url": (server.memory_bytes() - empty_bytes) / size}
        row |= {"disk_bytes_per_url": folder_bytes(folder) / size}
        server.wait_until_idle()
        row |= asyncio.run(measure_over_http(server, plan.rounds))
    with serving(folder, plan.scratch) as again:
        row |= {"open_killed_s": again.opened_s, "ready_killed_s": again.ready_s}
    shutil.rmtree(folder)
    return row


async def _in_process(folder: Path, plan: Plan, size: int) -> dict[str, Any]:
    clock = ManualClock()
    guide = await filled_guide(folder, size, plan.hosts, clock)
    await asyncio.sleep(3)  # what the filling left to do in the background is not the asks' fault
    try:
        return await measure_in_process(guide, clock, size, plan.rounds)
    finally:
        await guide.close()


def _empty_server_bytes(plan: Plan) -> int:
    """The memory of a server on an empty folder."""
    with serving(_fresh_folder(plan, "empty"), plan.scratch) as server:
        return server.memory_bytes()


def _fresh_folder(plan: Plan, name: str) -> Path:
    folder = plan.scratch / name
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
