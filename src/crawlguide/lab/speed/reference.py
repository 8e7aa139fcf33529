"""A loop that is always the same work, timed between what is measured: how fast is the machine at this minute?

It does a little of what a guide does (JSON, words, sorting, a heap), with the standard library alone, and neither knows
nor grows with the frontier. Machines differ, and one machine differs from minute to minute: what was measured divided
by this differs less.
"""

from __future__ import annotations

import heapq
import json
import time
from statistics import median

URLS = [f"https://h{number:05d}.example/docs/section-{number % 97}/page-{number:08d}.html" for number in range(60)]


def reference_ns() -> int:
    """CPU time of one turn of the loop in this thread."""
    began = time.thread_time_ns()
    _turn()
    return time.thread_time_ns() - began


def reference_us(turns: int = 20) -> float:
    """The median of some turns."""
    return median(reference_ns() for _ in range(turns)) / 1e3


def _turn() -> int:
    written = json.dumps([{"url": url, "score": len(url) / 7, "words": url.split("/")} for url in URLS])
    read = json.loads(written)
    heap = [(one["score"], number) for number, one in enumerate(read)]
    heapq.heapify(heap)
    order = [heapq.heappop(heap)[1] for _ in range(len(heap))]
    return len({read[row]["words"][-1].partition(".")[0] for row in sorted(order)})
