"""Train the network of `tres` on the transitions of crawls, and write it as an ONNX file."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.config import StoreOptions
from crawlguide.core.errors import ConfigError
from crawlguide.core.types import Crawl
from crawlguide.store.embedded import build
from crawlguide.strategies.tres.records import TRANSITION
from crawlguide.training import needed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from crawlguide.core.notebook import Records

SHEET = "t.step"


def train(data: Path, crawls: Sequence[str], out: Path, steps: int, seed: int, say: Callable[[str], None]) -> None:
    """Train on the transitions that lie in a data folder; `steps` are batches of 64 of them."""
    found = transitions(data, crawls)
    network = needed("crawlguide.training.tres_network")
    network.export(network.fitted(found, network.Fitting(steps=steps), seed), out)
    say(f"{out}: {len(found)} transitions, {steps} steps, {out.stat().st_size} bytes")


def transitions(folder: Path, names: Sequence[str], tenant: str = "default") -> Records:
    """Of the named crawls, or of all. A folder that is being served is locked: read a backup of it."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder")
    return asyncio.run(_transitions(folder, names, tenant))


async def _transitions(folder: Path, names: Sequence[str], tenant: str) -> Records:
    store = build(StoreOptions(), folder)
    try:
        wanted = [Crawl(tenant, name) for name in names] or await store.crawl_list(tenant)
        sheets = [(await store.notebook(crawl)).sheet(SHEET, TRANSITION) for crawl in wanted]
        found = [sheet.rows[: sheet.used].copy() for sheet in sheets]
    finally:
        await store.close()
    joined: Records = np.concatenate(found) if found else np.zeros(0, TRANSITION)
    if not len(joined):
        raise ConfigError(f"{folder}: expected crawls with transitions of the strategy tres, got none")
    return joined
