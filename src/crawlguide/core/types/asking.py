"""What is asked: by whom, for which crawl, how much at the most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Crawl(NamedTuple):
    """Whose frontier: every call to a store carries it, so no tenant or crawl ever sees another."""

    tenant: str
    name: str


@dataclass(frozen=True)
class Budget:
    """What one crawler can take until it asks again. `None` means no bound of that kind."""

    max_urls: int
    max_bytes: int | None = None
    timeout_ms: int = 120_000


@dataclass(frozen=True)
class Seed:
    """A URL that a person or a crawler vouches for."""

    url: str
    priority: float | None = None
    max_depth: int | None = None
    metadata: bytes | None = None


@dataclass(frozen=True)
class Ask:
    """One crawler's question: where should I go next?"""

    crawl: Crawl
    crawler_id: str
    at: float
    budget: Budget
    request_id: str | None = None
    digest: bytes = b""
    seeds: tuple[Seed, ...] = ()
    focus: frozenset[str] = frozenset()
    domain_hash: str | None = None
    external: Mapping[int, Mapping[str, float]] = field(default_factory=dict)  # by URL
    yields: Mapping[int, tuple[float, float]] = field(default_factory=dict)  # by domain: pages visited, new ones
    concurrency: int = 8
