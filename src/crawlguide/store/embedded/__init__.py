"""One folder, no server: RocksDB keeps what is known, columns in memory answer.

`store` is the plug. Changed rows are dirty (`store/dirty`) until `writer` puts them into the `journal`, and `committer`
syncs it, before a change is acknowledged. A `snapshot` of all rows, written in chunks while others are served, lets the
journal begin anew. Opening is `loading` the snapshot and the journal since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.store.embedded.store import EmbeddedStore
from crawlguide.store.moves.rank import Quota
from crawlguide.store.tables.sharing import sharing

__all__ = ["EmbeddedStore", "build"]

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.core.config import StoreOptions


def build(options: StoreOptions, folder: Path) -> EmbeddedStore:
    """Open or make the store in a folder."""
    return EmbeddedStore(folder, Quota.of(options), sharing(options))
