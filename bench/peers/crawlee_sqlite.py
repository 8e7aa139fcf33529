"""crawlee's request queue in SQLite.

.venv-peers/crawlee/bin/python -m bench.peers.crawlee_sqlite COUNT HOSTS
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.peers import crawlee_queue
from bench.peers.trial import Frontier, Peer, main
from crawlee.storage_clients import SqlStorageClient

LACKS = (
    "no fsync at commit (WAL, synchronous=NORMAL): a power cut may take back the last ones; leases of a fixed five "
    "minutes, not renewed; no priorities beyond a forefront flag, no politeness"
)


async def opened(folder: Path) -> Frontier:
    storage: Any = SqlStorageClient()
    # The threads of its connections would keep the process from ending.
    return await crawlee_queue.opened(storage, folder, closing=storage.close)


if __name__ == "__main__":
    main(Peer("crawlee_sqlite", "crawlee", LACKS, opened))
