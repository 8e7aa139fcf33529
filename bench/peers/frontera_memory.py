"""Frontera's memory backend behind its whole local manager: fingerprints, canonical URLs, strategy, states.

.venv-peers/frontera/bin/python -m bench.peers.frontera_memory COUNT HOSTS
"""

from __future__ import annotations

import collections
import logging
from collections import abc
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.peers.trial import Peer, main

LACKS = (
    "memory only: a crash loses all of it; a URL leaves the queue when taken, so one not finished is lost; "
    "no leases, no politeness"
)


@dataclass(frozen=True)
class Memory:
    manager: Any
    page: Any

    async def add(self, batch: Sequence[str]) -> None:
        links = [self.manager.request_model(url) for url in batch]
        self.manager.links_extracted(self.page, links)

    async def next(self, most: int) -> list[str]:
        # Without partitions the backend answers with nothing.
        return [request.url for request in self.manager.get_next_requests(most, partitions=[0])]

    async def close(self) -> None:
        self.manager.stop()


def manager_class() -> Any:
    """Frontera imports from `collections` what Python 3.10 moved to `collections.abc` for good."""
    for name in ("Iterable", "Mapping", "MutableMapping", "Sequence"):
        setattr(collections, name, getattr(abc, name))
    return import_module("frontera.core.manager").LocalFrontierManager


async def opened(folder: Path) -> Memory:  # noqa: ARG001 - nothing of this peer is on disk
    manager = manager_class().from_settings()
    # The backend logs to a logger that it never makes.
    manager.backend.logger = logging.getLogger("memory.backend")
    return Memory(manager, manager.request_model("https://start.example/"))


if __name__ == "__main__":
    main(Peer("frontera_memory", "frontera", LACKS, opened))
