"""crawlee's request queue, one file per request.

.venv-peers/crawlee/bin/python -m bench.peers.crawlee_files COUNT HOSTS
"""

from __future__ import annotations

from pathlib import Path

from bench.peers import crawlee_queue
from bench.peers.trial import Frontier, Peer, main
from crawlee.storage_clients import FileSystemStorageClient

LACKS = (
    "no fsync; no leases: a request taken and not finished comes back only when the queue is opened again, and a "
    "crash loses the order; one process only, no priorities beyond a forefront flag, no politeness"
)


async def opened(folder: Path) -> Frontier:
    return await crawlee_queue.opened(FileSystemStorageClient(), folder)


if __name__ == "__main__":
    main(Peer("crawlee_files", "crawlee", LACKS, opened))
