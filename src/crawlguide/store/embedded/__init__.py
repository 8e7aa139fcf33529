"""One folder, no server: RocksDB keeps what is known, columns in memory keep it quick.

Every change goes into a log of changed rows before it is answered for; a snapshot of all rows, written piece by piece
while others are served, lets the log begin anew. Opening is loading the snapshot and the rows logged since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.store.embedded.store import EmbeddedStore
from crawlguide.store.moves.rank import Quota
from crawlguide.store.tables import politeness_queues

__all__ = ["EmbeddedStore", "build"]

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.core.config import StoreOptions


def build(options: StoreOptions, folder: Path) -> EmbeddedStore:
    """Open or make the store in a folder."""
    return EmbeddedStore(folder, Quota.of(options), politeness_queues.sharing(options))
