"""Train the network of `tres` on the transitions of crawls, and write it as an ONNX file."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.config import StoreOptions
from crawlguide.core.errors import ConfigError, NotFound
from crawlguide.core.types import Crawl
from crawlguide.store.embedded import build
from crawlguide.strategies.tres.records import TRANSITION

if TYPE_CHECKING:
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m crawlguide.training.tres", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a data folder that is not being served, or a backup")
    parser.add_argument(
        "--crawl", action="append", default=[], help="whose transitions; by default those of all crawls"
    )
    parser.add_argument("--out", type=Path, required=True, help="where the ONNX file goes")
    parser.add_argument("--steps", type=int, default=5_000, help="batches of 64 transitions")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found = transitions(given.data, given.crawl)
    try:
        from crawlguide.training import tres_network  # noqa: PLC0415 - torch is an extra
    except ImportError as missing:
        raise ConfigError(f"training needs the extra train (pip install 'crawlguide[train]'): {missing}") from None
    trained = tres_network.fitted(found, tres_network.Fitting(steps=given.steps), given.seed)
    tres_network.export(trained, given.out)
    sys.stdout.write(f"{given.out}: {len(found)} transitions, {given.steps} steps, {given.out.stat().st_size} bytes\n")


if __name__ == "__main__":
    try:
        main()
    except (ConfigError, NotFound) as wrong:
        sys.exit(wrong.message)
