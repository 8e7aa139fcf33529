"""Every strategy of ours goes on after a crash as if nothing had been: what counts is in its notebook, and was told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from crawlguide import strategies
from crawlguide.core import plugs
from crawlguide.core.clock import ManualClock
from crawlguide.store.embedded import EmbeddedStore
from crawlguide.store.memory import MemoryStore
from crawlguide.store.moves.rank import Quota

from . import files
from .crawling import DEFINITION, MAIN, Crawler
from .plain import learned

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.core.protocols import Store

QUOTA = Quota(urls=1_000, urls_per_host=1_000, links=1_000)
STEPS, CRASH_AFTER = 12, 5


def crawling(store: Store, kind: str) -> Crawler:
    return Crawler(store, ManualClock(), definition=msgspec.structs.replace(DEFINITION, strategy={"kind": kind}))


async def worked(crawler: Crawler, steps: int) -> None:
    for _ in range(steps):
        await crawler.step()


KINDS = plugs.kinds(strategies)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_strategy_goes_on_after_a_crash(kind: str, tmp_path: Path) -> None:
    twin = crawling(MemoryStore(QUOTA), kind)
    await twin.begin()
    await worked(twin, STEPS)
    crawler = crawling(EmbeddedStore(tmp_path / "data", QUOTA), kind)
    await crawler.begin()
    await worked(crawler, CRASH_AFTER)
    before = crawler.store
    assert isinstance(before, EmbeddedStore)
    after = EmbeddedStore(files.copy(before.folder, tmp_path / "copy", before), QUOTA)
    assert learned(await after.notebook(MAIN)) == learned(await before.notebook(MAIN))
    crawler.go_on_with(after)
    await worked(crawler, STEPS - CRASH_AFTER)
    assert crawler.given == twin.given
    for store in (before, after):
        await store.close()
