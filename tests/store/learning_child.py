"""A process that crawls with a strategy that learns, and says what it was given, until it is killed.

`python -m tests.store.learning_child FOLDER`; `CRAWLGUIDE_FAULTPOINT` says where it dies.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from crawlguide.core.clock import ManualClock
from crawlguide.store.embedded import EmbeddedStore, writer
from crawlguide.store.moves.rank import Quota

from .crawling import Crawler

QUOTA = Quota(urls=1_000, urls_per_host=1_000, links=1_000)
STEPS = 13
LOG_AT_LEAST = 2_000  # so that snapshots are among what is interrupted


async def main(folder: Path) -> None:
    crawler = Crawler(EmbeddedStore(folder, QUOTA), ManualClock())
    await crawler.begin()
    say([])
    for _ in range(STEPS):
        await crawler.step()
        say(crawler.given[-1])
    for _ in range(600):  # whoever came so far brings a snapshot to its end, and waits to be killed
        await crawler.guide.upkeep()
        await asyncio.sleep(0.1)


def say(given: list[str]) -> None:
    sys.stdout.write(json.dumps(given) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    writer.LOG_AT_LEAST = LOG_AT_LEAST
    asyncio.run(main(Path(sys.argv[1])))
