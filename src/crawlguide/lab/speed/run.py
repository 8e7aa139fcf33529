"""The whole measurement, on one core, as one document."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crawlguide.lab.speed import inside, outside, queue
from crawlguide.lab.speed.frontier import filled
from crawlguide.lab.speed.server import folder_bytes, serving
from crawlguide.testing import ManualClock
from crawlguide.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

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
