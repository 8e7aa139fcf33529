"""Asks and tells in one process: CPU time, beside a plain Python heap of as many URLs in the same minutes.

The heap pops the candidates of an ask and pushes them back; it has neither hosts nor politeness, leases, scores,
reasons or a disk. Machines differ, and one machine differs from minute to minute: the ratio is what counts.
"""

from __future__ import annotations

import gc
import heapq
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.lab.speed.frontier import OUTLINKS, URLS_OUT, ask_message, report_message

if TYPE_CHECKING:
    from crawlguide.core.messages import Advice, ReportMessage
    from crawlguide.guide.local import LocalGuide
    from crawlguide.testing import ManualClock

ROUNDS, WARM_UP, CANDIDATES, PAGES_TOLD = 500, 100, 200, 10


@dataclass
class Times:
    """CPU nanoseconds of this thread, one for each round."""

    asks: list[int] = field(default_factory=list)
    tells: list[int] = field(default_factory=list)  # of one page
    long_tells: list[int] = field(default_factory=list)  # of ten
    heap: list[int] = field(default_factory=list)


async def measure_in_process(guide: LocalGuide, clock: ManualClock, count: int, rounds: int = ROUNDS) -> dict[str, Any]:
    times, heap = Times(), plain_heap(count)
    gc.collect()
    gc.freeze()
    whole, alone = time.process_time_ns(), time.thread_time_ns()
    for number in range(rounds):
        clock.advance(0.05)
        advice = await timed_ask(guide, f"{number}", times.asks)
        await timed_tell(guide, report_message(advice, f"{number}", 1), times.tells)
        times.heap.append(heap_ask_ns(heap))
    others = (time.process_time_ns() - whole) - (time.thread_time_ns() - alone)
    for number in range(rounds // PAGES_TOLD):
        clock.advance(1.0)
        advice = await timed_ask(guide, f"long-{number}", [])
        await timed_tell(guide, report_message(advice, f"long-{number}", PAGES_TOLD), times.long_tells)
    gc.unfreeze()
    return figures(times) | {"background_us": others / rounds / 1e3}


async def timed_ask(guide: LocalGuide, name: str, times: list[int]) -> Advice:
    message = ask_message(name)
    began = time.thread_time_ns()
    advice = await guide.ask(message)
    times.append(time.thread_time_ns() - began)
    if len(advice.assigned_urls) != URLS_OUT:
        raise RuntimeError(f"expected {URLS_OUT} URLs, got {len(advice.assigned_urls)}: nothing to measure")
    return advice


async def timed_tell(guide: LocalGuide, report: ReportMessage, times: list[int]) -> None:
    began = time.thread_time_ns()
    await guide.tell(report)
    times.append(time.thread_time_ns() - began)


def figures(times: Times) -> dict[str, Any]:
    ask, tell, heap = (np.array(column[WARM_UP:]) / 1e3 for column in (times.asks, times.tells, times.heap))
    return {
        "ask_us": float(ask.mean()),
        "ask_us_p50": float(np.median(ask)),
        "ask_us_p99": float(np.quantile(ask, 0.99)),
        "tell_us": float(tell.mean()),
        "tell_us_p50": float(np.median(tell)),
        "link_us": float(tell.mean() / OUTLINKS),
        "link_us_of_ten_pages": float(np.mean(times.long_tells) / 1e3 / OUTLINKS / PAGES_TOLD),
        "heap_us_p50": float(np.median(heap)),
        "ask_to_heap": float(np.median(ask) / np.median(heap)),
    }


def plain_heap(count: int) -> list[tuple[float, int]]:
    priorities = np.random.default_rng(1).random(count).tolist()
    heap = list(zip(priorities, range(count), strict=True))
    heapq.heapify(heap)
    return heap


def heap_ask_ns(heap: list[tuple[float, int]]) -> int:
    began = time.thread_time_ns()
    taken = [heapq.heappop(heap) for _ in range(min(CANDIDATES, len(heap)))]
    for priority, number in taken:
        heapq.heappush(heap, (1.0 - priority, number))
    return time.thread_time_ns() - began
