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
    peers: list[int] = field(default_factory=list)


async def measured(guide: LocalGuide, clock: ManualClock, count: int, rounds: int = ROUNDS) -> dict[str, Any]:
    times, heap = Times(), plain_heap(count)
    gc.collect()
    gc.freeze()
    whole, alone = time.process_time_ns(), time.thread_time_ns()
    for number in range(rounds):
        clock.advance(0.05)
        advice = await asked(guide, f"{number}", times.asks)
        await told(guide, report_message(advice, f"{number}", 1), times.tells)
        times.peers.append(looked_at(heap))
    others = (time.process_time_ns() - whole) - (time.thread_time_ns() - alone)
    for number in range(rounds // PAGES_TOLD):
        clock.advance(1.0)
        advice = await asked(guide, f"long-{number}", [])
        await told(guide, report_message(advice, f"long-{number}", PAGES_TOLD), times.long_tells)
    gc.unfreeze()
    return figures(times) | {"background_us": others / rounds / 1e3}


async def asked(guide: LocalGuide, name: str, times: list[int]) -> Advice:
    question = ask_message(name)
    began = time.thread_time_ns()
    advice = await guide.ask(question)
    times.append(time.thread_time_ns() - began)
    if len(advice.assigned_urls) != URLS_OUT:
        raise RuntimeError(f"expected {URLS_OUT} URLs, got {len(advice.assigned_urls)}: nothing to measure")
    return advice


async def told(guide: LocalGuide, report: ReportMessage, times: list[int]) -> None:
    began = time.thread_time_ns()
    await guide.tell(report)
    times.append(time.thread_time_ns() - began)


def figures(times: Times) -> dict[str, Any]:
    ask, tell, peer = (np.array(column[WARM_UP:]) / 1e3 for column in (times.asks, times.tells, times.peers))
    return {
        "ask_us": float(ask.mean()),
        "ask_us_p50": float(np.median(ask)),
        "ask_us_p99": float(np.quantile(ask, 0.99)),
        "tell_us": float(tell.mean()),
        "tell_us_p50": float(np.median(tell)),
        "link_us": float(tell.mean() / OUTLINKS),
        "link_us_of_ten_pages": float(np.mean(times.long_tells) / 1e3 / OUTLINKS / PAGES_TOLD),
        "heap_us_p50": float(np.median(peer)),
        "ask_to_heap": float(np.median(ask) / np.median(peer)),
    }


def plain_heap(count: int) -> list[tuple[float, int]]:
    priorities = np.random.default_rng(1).random(count).tolist()
    heap = list(zip(priorities, range(count), strict=True))
    heapq.heapify(heap)
    return heap


def looked_at(heap: list[tuple[float, int]]) -> int:
    began = time.thread_time_ns()
    taken = [heapq.heappop(heap) for _ in range(min(CANDIDATES, len(heap)))]
    for priority, number in taken:
        heapq.heappush(heap, (1.0 - priority, number))
    return time.thread_time_ns() - began
