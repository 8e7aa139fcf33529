"""The trial every peer goes through: add all URLs in batches, take them all out again, print one line of figures.

Standard library only: it is imported inside the environments of the peers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from bench.peers.addresses import urls

BATCH = 100


class Frontier(Protocol):
    """A peer's frontier. A batch is awaited, not a URL, so that synchronous peers pay nothing for the protocol."""

    async def add(self, batch: Sequence[str]) -> None:
        """Through the peer's own dedup."""

    async def next(self, most: int) -> list[str]:
        """At most `most` URLs, finished as far as the peer knows such a thing; none left: an empty list."""

    async def close(self) -> None: ...


@dataclass(frozen=True)
class Peer:
    """Who goes through the trial; `lacks` is one sentence: what it does not guarantee, read in its source."""

    name: str
    package: str
    lacks: str
    opened: Callable[[Path], Awaitable[Frontier]]


@dataclass
class Spent:
    wall_s: float = 0.0
    cpu_s: float = 0.0

    @contextmanager
    def ticking(self) -> Iterator[None]:
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        yield
        self.wall_s += time.perf_counter() - wall_s
        self.cpu_s += time.process_time() - cpu_s


async def added(frontier: Frontier, given: list[str]) -> Spent:
    spent = Spent()
    with spent.ticking():
        for first in range(0, len(given), BATCH):
            await frontier.add(given[first : first + BATCH])
    return spent


async def drained(frontier: Frontier, given: list[str]) -> Spent:
    """Fails unless every URL came out exactly once."""
    spent, taken = Spent(), list[str]()
    with spent.ticking():
        while found := await frontier.next(BATCH):
            taken += found
    assert len(taken) == len(given), f"{len(given)} URLs went in, {len(taken)} came out"
    assert set(taken) == set(given), "other URLs came out than went in"
    return spent


async def run(peer: Peer, given: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        frontier = await peer.opened(Path(folder))
        adding = await added(frontier, given)
        # Once more and not counted: a peer without dedup would now hand these out twice.
        await frontier.add(given[:BATCH])
        taking = await drained(frontier, given)
        await frontier.close()
    who = {"peer": peer.name, "version": version(peer.package)}
    return who | figures(len(given), adding, taking) | {"lacks": peer.lacks}


def figures(count: int, adding: Spent, taking: Spent) -> dict[str, Any]:
    return {
        "count": count,
        "add_per_s": round(count / adding.wall_s, 1),
        "next_per_s": round(count / taking.wall_s, 1),
        "add_next_per_s": round(count / (adding.wall_s + taking.wall_s), 1),
        "cpu_us_per_url": round((adding.cpu_s + taking.cpu_s) / count * 1e6, 2),
    }


def main(peer: Peer) -> None:
    arguments = argparse.ArgumentParser(description=peer.lacks)
    arguments.add_argument("count", type=int)
    arguments.add_argument("hosts", type=int)
    given = arguments.parse_args()
    print(json.dumps(asyncio.run(run(peer, urls(given.count, given.hosts)))))
