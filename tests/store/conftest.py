from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crawlguide.store.embedded import EmbeddedStore
from crawlguide.store.memory import MemoryStore
from crawlguide.store.moves.rank import Quota

from .builders import CRAWL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from crawlguide.core.protocols import Store

KINDS = ("memory", "embedded")


def opened(kind: str, quota: Quota, folder: Path) -> Store:
    """Every kind of store that the contract holds."""
    return MemoryStore(quota) if kind == "memory" else EmbeddedStore(folder, quota)


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened_store = opened(request.param, Quota(urls=1_000_000, urls_per_host=1_000_000, links=1_000_000), tmp_path)
    await opened_store.crawl_put(CRAWL, b"{}", 0.0)
    yield opened_store
    await opened_store.close()


@pytest.fixture(params=KINDS)
async def small_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store with room for three waiting URLs a crawl, two a host."""
    opened_store = opened(request.param, Quota(urls=3, urls_per_host=2, links=10), tmp_path)
    await opened_store.crawl_put(CRAWL, b"{}", 0.0)
    yield opened_store
    await opened_store.close()
