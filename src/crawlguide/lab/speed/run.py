"""The whole measurement of `crawlguide bench`, on one core, as one JSON document."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crawlguide.core.config import Config
from crawlguide.gateway.opening import open_guide
from crawlguide.lab.speed.add_next import measure_add_next
from crawlguide.lab.speed.frontier import URLS_OUT, filled_guide, report_body
from crawlguide.lab.speed.in_process import measure_in_process, warmed_up
from crawlguide.lab.speed.lived import Growth
from crawlguide.lab.speed.over_http import measure_over_http, warm_up
from crawlguide.lab.speed.over_socket import measure_over_sockets
from crawlguide.lab.speed.quoted import QUOTED
from crawlguide.lab.speed.server import serving
from crawlguide.testing import ManualClock
from crawlguide.version import __version__

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from crawlguide.guide.local import LocalGuide
    from crawlguide.lab.speed.frontier import Reporter

ADD_NEXT_URLS = 100_000  # URLs in and out, as the peers do
POINTS = (
    100_000,
    500_000,
    1_000_000,
    2_000_000,
    3_000_000,
    5_000_000,
)  # of a lived crawl's growth, up to its last size
LIVED_URLS_PER_HOST = 10  # at least
SETTLES_S = 3


@dataclass(frozen=True)
class Plan:
    sizes: Sequence[int]
    hosts: int
    rounds: int
    scratch: Path
    progress: Callable[[str], None]
    lived_sizes: Sequence[int] = ()


@dataclass(frozen=True)
class Folder:
    """A folder that is measured, and by what pages."""

    path: Path
    size: int
    hosts: int
    report: Reporter = report_body
    least_urls: int = URLS_OUT  # of an ask in process
    warm_up_asks: int = 0  # after it is opened, before anything is measured


def document(plan: Plan, peers: Callable[[], list[dict[str, Any]]] | None) -> dict[str, Any]:
    """Measure everything; `peers` measures other people's frontiers, where they can be installed."""
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    empty_bytes = _empty_server_bytes(plan)
    rows = [measure_size(plan, size, empty_bytes) for size in plan.sizes]
    growth, lived = measure_lived(plan, empty_bytes) if plan.lived_sizes else ([], [])
    count = min(ADD_NEXT_URLS, max([*plan.sizes, *plan.lived_sizes]))
    queues = [asyncio.run(measure_add_next(_fresh_folder(plan, "queue"), count, plan.hosts))]
    queues += peers() if peers else []
    machine = {"processor": platform.processor() or platform.machine(), "cores_used": 1}
    found = {"version": __version__, "machine": machine, "hosts": plan.hosts, "sizes": rows, "queues": queues}
    return found | {"lived": lived, "growth": growth, "quoted": [dict(row) for row in QUOTED]}


def measure_size(plan: Plan, size: int, empty_bytes: int) -> dict[str, Any]:
    """One size of a frontier that was filled past the learner."""
    folder, clock = Folder(_fresh_folder(plan, f"frontier-{size}"), size, plan.hosts), ManualClock()
    plan.progress(f"{size:,} URLs: filling a folder, asking and telling in process")

    filled = filled_guide(folder.path, size, plan.hosts, clock)
    row = {"urls": size} | asyncio.run(_in_process(filled, clock, folder, plan.rounds))
    return row | _served(plan, folder, f"{size:,} URLs", empty_bytes)


def measure_lived(plan: Plan, empty_bytes: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """One crawl that grows by tells: what growing costs, at some points; and at each size the same as of the others.

    That is measured on a copy, so that the crawl goes on as if nobody had looked.
    """
    last = max(plan.lived_sizes)
    points = sorted({*plan.lived_sizes, *(point for point in POINTS if point < last)})
    growth, rows = [], []
    with serving(_fresh_folder(plan, "lived"), plan.scratch) as server:
        hosts = min(plan.hosts, points[0] // LIVED_URLS_PER_HOST)
        lived = Growth(server, hosts, plan.progress)
        for point in points:
            plan.progress(f"lived crawl: growing to {point:,} URLs by asks and tells over HTTP")
            growth.append(lived.reach(point))
            if point in plan.lived_sizes:
                copy = _copied(plan, point, lived, hosts)
                rows.append(_measure_copy(plan, copy, f"lived crawl, {point:,} URLs", empty_bytes))
    return growth, rows


def _copied(plan: Plan, point: int, lived: Growth, hosts: int) -> Folder:
    """Whoever opens it reads the robots.txt of each host once, when it is first looked at; so it is warmed up."""
    path = _fresh_folder(plan, f"lived-{point}")
    lived.copy(path)
    return Folder(path, lived.urls, hosts, lived.web.report, least_urls=0, warm_up_asks=max(1, hosts // URLS_OUT))


def _measure_copy(plan: Plan, copy: Folder, name: str, empty_bytes: int) -> dict[str, Any]:
    plan.progress(f"{name}: asking and telling in process")
    clock = ManualClock(time.time())

    async def opened() -> LocalGuide:
        return open_guide(copy.path, Config(), clock)

    row = {"urls": copy.size} | asyncio.run(_in_process(opened(), clock, copy, plan.rounds))
    return row | _served(plan, copy, name, empty_bytes)


async def _in_process(
    opening: Awaitable[LocalGuide], clock: ManualClock, folder: Folder, rounds: int
) -> dict[str, Any]:
    guide = await opening
    try:
        await asyncio.sleep(SETTLES_S)  # what the filling left to do in the background is not the asks' fault
        first = {}
        if folder.warm_up_asks:
            first = {"first_asks_us": await warmed_up(guide, clock, folder.warm_up_asks)}
        measured = await measure_in_process(guide, clock, folder.size, rounds, folder.report, folder.least_urls)
        return measured | first
    finally:
        await guide.close()


def _served(plan: Plan, folder: Folder, name: str, empty_bytes: int) -> dict[str, Any]:
    """A server on the folder, which is killed and started again; then the folder is removed."""
    plan.progress(f"{name}: over HTTP and WebSockets")
    row: dict[str, Any] = {}
    with serving(folder.path, plan.scratch) as server:
        row |= {"open_clean_s": server.opened_s, "ready_clean_s": server.ready_s}
        row |= {"memory_bytes_per_url": (server.memory_bytes() - empty_bytes) / folder.size}
        row |= {"disk_bytes_per_url": folder_bytes(folder.path) / folder.size}
        server.wait_until_idle()
        if folder.warm_up_asks:
            asyncio.run(warm_up(server, folder.warm_up_asks))
        row |= asyncio.run(measure_over_http(server, plan.rounds, folder.report, folder.hosts))
        row |= asyncio.run(measure_over_sockets(server, plan.rounds))
    with serving(folder.path, plan.scratch) as again:
        row |= {"open_killed_s": again.opened_s, "ready_killed_s": again.ready_s}
    shutil.rmtree(folder.path)
    return row


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
