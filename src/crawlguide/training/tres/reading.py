"""Transitions out of data folders: what the strategy `tres` has kept of crawls."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.config import StoreOptions
from crawlguide.core.errors import ConfigError
from crawlguide.core.types import Crawl
from crawlguide.predictors.tres.records import TRANSITION
from crawlguide.store.embedded import build

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.core.notebook import Records

SHEET = "t.step"


def transitions(folder: Path, names: list[str], tenant: str = "default") -> Records:
    """Of the named crawls, or of all. A folder that is being served is locked: read a backup of it."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder")
    return asyncio.run(_transitions(folder, names, tenant))


async def _transitions(folder: Path, names: list[str], tenant: str) -> Records:
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
