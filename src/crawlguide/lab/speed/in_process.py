"""Asks and tells in one process: CPU time, beside a reference loop and a plain Python heap in the same minutes.

Machines differ, and one machine differs from minute to minute: the ratio to the reference loop is what counts. The
heap, of as many URLs, pops the candidates of an ask and pushes them back; it has neither hosts nor politeness, leases,
scores, reasons or a disk.
"""

from __future__ import annotations

import gc
import heapq
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from crawlguide.core.messages import AskMessage
from crawlguide.lab.speed.frontier import (
    OUTLINKS,
    URLS_OUT,
    WARMING_S,
    ask_message,
    report_body,
    report_message,
    warming_body,
)
from crawlguide.lab.speed.reference import reference_ns

if TYPE_CHECKING:
    from crawlguide.core.messages import Advice, ReportMessage
    from crawlguide.guide.local import LocalGuide
    from crawlguide.lab.speed.frontier import Reporter
    from crawlguide.testing import ManualClock

ROUNDS, WARM_UP, CANDIDATES, PAGES_TOLD = 500, 100, 200, 10


@dataclass
class Times:
    """CPU nanoseconds of this thread, one for each round."""

    asks: list[int] = field(default_factory=list)
    tells: list[int] = field(default_factory=list)  # of one page
    long_tells: list[int] = field(default_factory=list)  # of ten
    heap: list[int] = field(default_factory=list)
    reference: list[int] = field(default_factory=list)
    urls: list[int] = field(default_factory=list)  # that each ask was given
    others: int = 0  # of all other threads, for all rounds


async def measure_in_process(
    guide: LocalGuide,
    clock: ManualClock,
    count: int,
    rounds: int = ROUNDS,
    report: Reporter = report_body,
    least_urls: int = URLS_OUT,
) -> dict[str, Any]:
    """`report` makes the pages that are told; an answer of fewer than `least_urls` is an error."""
    times, heap = Times(), plain_heap(count)
    gc.collect()
    gc.freeze()
    whole, alone = time.process_time_ns(), time.thread_time_ns()
    for number in range(rounds):
        clock.advance(0.05)
        advice = await timed_ask(guide, f"{number}", times.asks)
        times.urls.append(enough(advice, least_urls))
        if advice.assigned_urls:
            await timed_tell(guide, report_message(advice, f"{number}", 1, report), times.tells)
        times.heap.append(heap_ask_ns(heap))
        times.reference.append(reference_ns())
    times.others = (time.process_time_ns() - whole) - (time.thread_time_ns() - alone)
    for number in range(rounds // PAGES_TOLD):
        clock.advance(1.0)
        advice = await timed_ask(guide, f"long-{number}", [])
        if enough(advice, least_urls) >= PAGES_TOLD:
            await timed_tell(guide, report_message(advice, f"long-{number}", PAGES_TOLD, report), times.long_tells)
    gc.unfreeze()
    return figures(times)


def enough(advice: Advice, least: int) -> int:
    """How many URLs there are, if there are as many as are to be measured."""
    count = len(advice.assigned_urls)
    if count < least:
        raise RuntimeError(f"expected {least} URLs, got {count}: nothing to measure")
    return count


async def warmed_up(guide: LocalGuide, clock: ManualClock, asks: int) -> float:
    """Ask, so that what is read from the disk once is in memory; µs for one of the first asks after a start."""
    times: list[int] = []
    for number in range(asks):
        clock.advance(0.05)
        await timed(guide, msgspec.convert(warming_body(f"warm-{number}"), AskMessage), times)
    clock.advance(2 * WARMING_S)
    return float(np.mean(times[:WARM_UP]) / 1e3)


async def timed_ask(guide: LocalGuide, name: str, times: list[int]) -> Advice:
    return await timed(guide, ask_message(name), times)


async def timed(guide: LocalGuide, message: AskMessage, times: list[int]) -> Advice:
    began = time.thread_time_ns()
    advice = await guide.ask(message)
    times.append(time.thread_time_ns() - began)
    return advice


async def timed_tell(guide: LocalGuide, report: ReportMessage, times: list[int]) -> None:
    began = time.thread_time_ns()
    await guide.tell(report)
    times.append(time.thread_time_ns() - began)


def figures(times: Times) -> dict[str, Any]:
    columns = (times.asks, times.tells, times.heap, times.reference)
    ask, tell, heap, reference = (np.array(column[WARM_UP:]) / 1e3 for column in columns)
    long_tells = np.array(times.long_tells) / 1e3
    return {
        "ask_us": float(ask.mean()),
        "ask_us_p50": float(np.median(ask)),
        "ask_us_p99": float(np.quantile(ask, 0.99)),
        "tell_us": float(tell.mean()),
        "tell_us_p50": float(np.median(tell)),
        "link_us": float(tell.mean() / OUTLINKS),
        "link_us_of_ten_pages": float(long_tells.mean() / OUTLINKS / PAGES_TOLD),
        "heap_us_p50": float(np.median(heap)),
        "ask_to_heap": float(np.median(ask) / np.median(heap)),
        "reference_us_p50": float(np.median(reference)),
        "ask_to_reference": float(np.median(ask) / np.median(reference)),
        "tell_to_reference": float(np.median(tell) / np.median(reference)),
        "long_tell_to_reference": float(np.median(long_tells) / np.median(reference)),
        "urls_per_ask": float(np.mean(times.urls)),
        "background_us": times.others / len(times.asks) / 1e3,
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
